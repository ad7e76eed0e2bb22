package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"
)

// Origin returns who calls; it makes every request that embeds a Caller a
// Request.
func (c Caller) Origin() Caller { return c }

// Request is a call that carries its caller.
type Request interface{ Origin() Caller }

// RequestHash returns the hex SHA-256 of kind and req without its idempotency
// key: two calls with the same hash ask for the same thing.
func RequestHash(kind string, req Request) string {
	h := sha256.New()
	h.Write([]byte(kind))
	h.Write([]byte{0})
	raw, err := json.Marshal(req)
	if err == nil {
		// Through a map: the key leaves, and the order of fields is the
		// encoder's sorted one whatever a later version of the struct does.
		var m map[string]any
		if json.Unmarshal(raw, &m) == nil {
			delete(m, "key")
			raw, _ = json.Marshal(m)
		}
	}
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// CheckWorkspace refuses anything that is not a workspace id: 1 to 64 of
// a-z 0-9 . _ -, starting with a letter or digit. Ids that some file system
// treats specially are refused too, before a path is made of them.
func CheckWorkspace(id string) error {
	if len(id) == 0 || len(id) > 64 {
		return Errorf(WorkspaceInvalid, "workspace", "a workspace id has 1 to 64 characters")
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		letterOrDigit := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letterOrDigit && (i == 0 || c != '.' && c != '_' && c != '-') {
			return Errorf(WorkspaceInvalid, "workspace", "a workspace id holds a-z 0-9 . _ - and starts with a letter or digit")
		}
	}
	if strings.HasSuffix(id, ".") || strings.Contains(id, "..") {
		return Errorf(WorkspaceInvalid, "workspace", "a workspace id neither holds two dots in a row nor ends in one")
	}
	base, _, _ := strings.Cut(id, ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return Errorf(WorkspaceInvalid, "workspace", "%q is a reserved name", id)
	}
	if len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' && base[3] <= '9' {
		return Errorf(WorkspaceInvalid, "workspace", "%q is a reserved name", id)
	}
	return nil
}

// CheckText refuses text that is not valid UTF-8, holds NUL or is longer than
// max bytes. It allows empty text: what is blank, the store decides.
func CheckText(field, s string, max int) error {
	if len(s) > max {
		return Errorf(ContentTooLarge, field, "%d bytes are over the limit of %d", len(s), max)
	}
	if !utf8.ValidString(s) {
		return Errorf(InvalidUTF8, field, "the text is not valid UTF-8")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return Errorf(InvalidUTF8, field, "the text holds a NUL character")
	}
	return nil
}

// CheckName refuses what CheckText refuses, and control characters and line
// breaks: names are shown on one line.
func CheckName(field, s string) error {
	if err := CheckText(field, s, MaxNameBytes); err != nil {
		if ErrorCode(err) == ContentTooLarge {
			return Errorf(InvalidArgument, field, "a name has at most %d bytes", MaxNameBytes)
		}
		return err
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return Errorf(InvalidArgument, field, "a name holds no control characters or line breaks")
		}
	}
	return nil
}

// CheckShare refuses a number that is not between 0 and 1; nil is allowed.
func CheckShare(field string, v *float64) error {
	if v != nil && (math.IsNaN(*v) || *v < 0 || *v > 1) {
		return Errorf(InvalidArgument, field, "the value must be between 0 and 1")
	}
	return nil
}

// Check refuses a caller whose workspace, agent, role, repo or key is not
// well formed.
func (c Caller) Check() error {
	if err := CheckWorkspace(c.Workspace); err != nil {
		return err
	}
	if err := CheckName("agent", c.Agent); err != nil {
		return err
	}
	if _, err := ParseRole("role", c.Role); err != nil {
		return err
	}
	if err := CheckName("repo", c.Repo); err != nil {
		return err
	}
	return CheckKey(c.Key)
}

// CheckKey refuses an idempotency key that is longer than 128 bytes or holds
// other than printable ASCII; "" is allowed. Keys become workflow ids.
func CheckKey(key string) error {
	if len(key) > MaxKeyBytes {
		return Errorf(InvalidArgument, "key", "an idempotency key has at most %d bytes", MaxKeyBytes)
	}
	for i := 0; i < len(key); i++ {
		if key[i] < 0x21 || key[i] > 0x7e {
			return Errorf(InvalidArgument, "key", "an idempotency key holds printable ASCII without spaces")
		}
	}
	return nil
}
