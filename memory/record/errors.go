package record

import (
	"errors"
	"fmt"
)

// Code names a kind of failure. The names are the wire contract: they are
// Temporal's application error types, the JSON-RPC error data, and what the
// command line prints.
type Code string

// The error names of the contract. Nothing was written when a call returns
// one of them.
const (
	InvalidArgument              Code = "InvalidArgument"
	NotFound                     Code = "NotFound"
	WorkspaceInvalid             Code = "WorkspaceInvalid"
	ContentEmpty                 Code = "ContentEmpty"
	ContentTooLarge              Code = "ContentTooLarge"
	InvalidUTF8                  Code = "InvalidUTF8"
	InsufficientMemoryPermission Code = "InsufficientMemoryPermission"
	IdempotencyKeyReused         Code = "IdempotencyKeyReused"
	VersionConflict              Code = "VersionConflict"
	SupersedeInvalid             Code = "SupersedeInvalid"
	OutOfOrder                   Code = "OutOfOrder"
	Unauthenticated              Code = "Unauthenticated"
	PayloadTooLarge              Code = "PayloadTooLarge"
	StoreNewer                   Code = "StoreNewer"
	StoreCorrupt                 Code = "StoreCorrupt"
	Unavailable                  Code = "Unavailable"
)

// codeTraits is the one table of what each error means to a caller.
var codeTraits = map[Code]struct {
	retryable bool
	exit      int
}{
	InvalidArgument:              {false, ExitUsage},
	WorkspaceInvalid:             {false, ExitUsage},
	ContentEmpty:                 {false, ExitUsage},
	ContentTooLarge:              {false, ExitUsage},
	InvalidUTF8:                  {false, ExitUsage},
	PayloadTooLarge:              {false, ExitUsage},
	NotFound:                     {false, ExitRefused},
	InsufficientMemoryPermission: {false, ExitRefused},
	IdempotencyKeyReused:         {false, ExitRefused},
	VersionConflict:              {false, ExitRefused},
	SupersedeInvalid:             {false, ExitRefused},
	OutOfOrder:                   {false, ExitRefused},
	Unauthenticated:              {false, ExitRefused},
	StoreNewer:                   {false, ExitUnavailable},
	StoreCorrupt:                 {false, ExitUnavailable},
	Unavailable:                  {true, ExitUnavailable},
}

// Process exit codes of the command line.
const (
	// ExitUsage: the call itself is wrong (arguments, sizes, encodings).
	ExitUsage = 2
	// ExitRefused: the call is well formed and the record refuses it.
	ExitRefused = 3
	// ExitUnavailable: the worker, the engine or the file cannot serve now.
	ExitUnavailable = 4
)

// Known reports whether c is a name of the contract.
func (c Code) Known() bool { _, ok := codeTraits[c]; return ok }

// Retryable reports whether trying again later may succeed unchanged.
func (c Code) Retryable() bool { return codeTraits[c].retryable }

// ExitCode returns the process exit code for c; an unknown code is
// unavailability, since nothing better is known of it.
func (c Code) ExitCode() int {
	if t, ok := codeTraits[c]; ok {
		return t.exit
	}
	return ExitUnavailable
}

// Error is the one error type that crosses a room's border.
type Error struct {
	// Code is the kind of failure.
	Code Code `json:"code"`
	// Message is for people. It names limits and ids, never stored content or
	// a path.
	Message string `json:"message"`
	// Field is the offending argument, in its JSON name; empty when no single
	// one is.
	Field string `json:"field,omitempty"`
	// Role, Domain, Required and Actual are set for
	// InsufficientMemoryPermission.
	Role     string `json:"role,omitempty"`
	Domain   string `json:"domain,omitempty"`
	Required string `json:"required,omitempty"`
	Actual   string `json:"actual,omitempty"`
	// Missing is set for OutOfOrder: the steps that are not done yet.
	Missing []string `json:"missing,omitempty"`
	// Err is the cause, for logs on the worker only.
	Err error `json:"-"`
}

// Error returns the code and the message.
func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: %s (%s)", e.Code, e.Message, e.Field)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error about field (empty for none). A %w verb keeps the
// cause out of the message that callers see only as far as its text goes, so
// give causes whose text is safe, or use Wrap.
func Errorf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error whose cause stays out of its message.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// ErrorCode returns the code of the first Error in err's chain, and
// Unavailable for any other error: a failure without a name is one that
// nothing is known about. It returns "" for nil.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Unavailable
}
