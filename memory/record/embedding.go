package record

import "strings"

// EmbeddingModel is the state of the embedding model of one worker.
type EmbeddingModel struct {
	Receipt
	// Installed reports that a model's files are in place.
	Installed bool `json:"installed"`
	// InUse reports that the worker makes vectors with those files.
	InUse bool `json:"in_use"`
	// Given reports that the worker was started with a folder of somebody
	// else's, which it neither installs to nor removes.
	Given bool `json:"given,omitempty"`
	// ID names the model and its weights; vectors carry it.
	ID string `json:"id,omitempty"`
	// Dimensions is the length of its vectors, Bytes the size of its files.
	Dimensions int   `json:"dimensions,omitempty"`
	Bytes      int64 `json:"bytes,omitempty"`
	// Problem says what is wrong with files that are no model.
	Problem string `json:"problem,omitempty"`
}

// maxSourceBytes bounds the source of a model: the longest path that systems
// take.
const maxSourceBytes = 4096

// InstallModel asks the worker that serves the caller's workspace to install an
// embedding model on its machine.
type InstallModel struct {
	Caller
	// Source is the absolute path of a folder or an archive on that machine, or
	// a name on the hub.
	Source string `json:"source"`
}

// Check refuses a source that cannot be one.
func (in InstallModel) Check() error {
	if err := in.Caller.Check(); err != nil {
		return err
	}
	if strings.TrimSpace(in.Source) == "" {
		return Errorf(InvalidArgument, "source", "the source is a folder, an archive or a name on the hub")
	}
	return CheckText("source", in.Source, maxSourceBytes)
}

// Identity is the hash of what is asked for, whoever asks.
func (in InstallModel) Identity() string {
	return RequestHash(KindInstallModel, InstallModel{Source: in.Source})
}

// RemoveModel asks the worker that serves the caller's workspace to do without
// an embedding model.
type RemoveModel struct{ Caller }

// Identity is the hash of what is asked for, whoever asks.
func (in RemoveModel) Identity() string { return RequestHash(KindRemoveModel, RemoveModel{}) }

// InstallProgress counts the bytes of an installation; Total is 0 while it is
// not known.
type InstallProgress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

// Backfill asks for the vectors of facts that have none of the model in use.
type Backfill struct{ Caller }

// BackfillPage is one page of a backfill.
type BackfillPage struct {
	Caller
	// Model is the one that the backfill is for. When another is in use nothing
	// is done, and the result names that one.
	Model string `json:"model"`
	// Cursor is where the page starts, Limit how many facts it considers.
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit"`
}

// BackfillReport counts what a backfill did.
type BackfillReport struct {
	// Considered counts facts without a vector of the model; Embedded those
	// that got one, Skipped the others: the model makes none of their text, or
	// they had got one meanwhile.
	Considered int `json:"considered"`
	Embedded   int `json:"embedded"`
	Skipped    int `json:"skipped"`
}

// Add adds o to r.
func (r *BackfillReport) Add(o BackfillReport) {
	r.Considered += o.Considered
	r.Embedded += o.Embedded
	r.Skipped += o.Skipped
}

// BackfillResult is the outcome of one page; an empty Next ends the backfill.
type BackfillResult struct {
	Receipt
	// Model is the one in use, "" for none.
	Model  string         `json:"model"`
	Report BackfillReport `json:"report"`
	Next   string         `json:"next,omitempty"`
	// Missing counts the facts without a vector of the model, when the page was
	// for another.
	Missing int64 `json:"missing,omitempty"`
}
