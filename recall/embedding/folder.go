package embedding

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall/embedding/internal/onnxfile"
)

// ModelDir returns the folder of the model in a data folder.
func ModelDir(data string) string { return filepath.Join(data, "models", ModelName) }

// Info tells of a model's folder.
type Info struct {
	// Installed reports that the files are there and can be read.
	Installed bool `json:"installed"`
	// Problem says what is wrong with a folder that holds something else.
	Problem string `json:"problem,omitempty"`
	// Dir is the folder.
	Dir string `json:"dir"`
	// ID is that of a Model opened there.
	ID string `json:"id,omitempty"`
	// Dimensions is the length of its vectors.
	Dimensions int `json:"dimensions,omitempty"`
	// Bytes is the size of its files.
	Bytes int64 `json:"bytes"`
}

// Status looks at a model's folder without loading the model. A folder that is
// missing or empty is no error, and neither is a broken one: Info says so.
func Status(dir string) (Info, error) {
	info := Info{Dir: dir}
	found := 0
	for _, name := range []string{weightsFile, tokenizerFile} {
		file, err := os.Stat(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return info, record.Wrap(record.Unavailable, err, "the folder of the embedding model cannot be read")
		}
		found++
		info.Bytes += file.Size()
	}
	if found == 0 {
		return info, nil
	}
	for _, name := range []string{weightsFile, tokenizerFile} {
		if err := present(dir, name); err != nil {
			info.Problem = name + " is missing or cannot be read"
			return info, nil
		}
	}
	weights := filepath.Join(dir, weightsFile)
	f, err := onnxfile.Open(weights)
	if err != nil {
		info.Problem = weightsFile + " is not an ONNX model"
		return info, nil
	}
	if err := f.Close(); err != nil {
		return info, record.Wrap(record.Unavailable, err, "the embedding model's %s cannot be read", weightsFile)
	}
	if info.ID, err = modelID(weights); err != nil {
		return info, record.Wrap(record.Unavailable, err, "the embedding model's %s cannot be read", weightsFile)
	}
	info.Installed, info.Dimensions = true, Dimensions
	return info, nil
}

// Remove deletes the model in a folder, and the folder. It touches no folder
// that holds anything else. A process that has the model open keeps it.
func Remove(dest string) error {
	if err := onlyModel(dest); err != nil {
		return err
	}
	if _, err := os.Lstat(dest); errors.Is(err, fs.ErrNotExist) {
		return record.Errorf(record.NotFound, "", "no embedding model is installed")
	}
	if err := removeModel(dest); err != nil {
		return record.Wrap(record.Unavailable, err, "the embedding model cannot be removed")
	}
	return nil
}

// onlyModel refuses a folder that holds anything but a model.
func onlyModel(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return record.Wrap(record.InvalidArgument, err, "the place of the embedding model is not a folder that can be read")
	}
	for _, e := range entries {
		if n := e.Name(); n != weightsFile && n != tokenizerFile || e.IsDir() {
			return record.Errorf(record.InvalidArgument, "dest", "the folder holds more than an embedding model: it is left alone")
		}
	}
	return nil
}

// removeModel deletes a model's files and then their folder, if that is empty.
func removeModel(dir string) error {
	for _, name := range []string{weightsFile, tokenizerFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Remove(dir)
}
