package engine

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestOpenFile_Fresh(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]map[string]string{
		"empty_folder": nil,
		// What a process leaves behind that is killed while it makes the file.
		"unfinished": {fileName + ".new": "half a schema", fileName + ".new-journal": "half a transaction"},
		// What somebody leaves behind who deletes the file but not its log.
		"old_log":    {fileName + "-wal": "pages of another file", fileName + "-shm": "their index"},
		"empty_file": {fileName: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, t.TempDir())
			for file, content := range left {
				if err := os.WriteFile(filepath.Join(cfg.Dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // Made, then found.
				f, err := openFile(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := f.createNamespace(cfg); err != nil {
					t.Error(err)
				}
				if err := f.close(); err != nil {
					t.Error(err)
				}
			}
			db, err := sql.Open(driverName, dataSource(filepath.Join(cfg.Dir, fileName), "ro"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			var mode, check string
			var namespaces int
			err = errors.Join(
				db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode),
				db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&check),
				db.QueryRowContext(t.Context(), "SELECT count(*) FROM namespaces").Scan(&namespaces),
			)
			if err != nil || mode != "wal" || check != "ok" || namespaces != 1 {
				t.Errorf("journal_mode %s, integrity_check %s, %d namespaces, %v", mode, check, namespaces, err)
			}
			entries, err := filepath.Glob(filepath.Join(cfg.Dir, fileName+".new*"))
			if err != nil || len(entries) > 0 {
				t.Errorf("left in the folder: %v, %v", entries, err)
			}
		})
	}
}

// Whoever holds the folder holds it until it is given back, also when nobody remembers that.
func TestOpenFile_HeldUnreferenced(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, t.TempDir())
	if _, err := openFile(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC() // Finalisers of one round run before the next ends.
	}
	if _, err := openFile(t.Context(), cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("openFile again: %v; want ErrInUse", err)
	}
	held.Range(func(key, _ any) bool {
		if f := key.(*file); filepath.Dir(f.path) == cfg.Dir {
			if err := f.close(); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	checkUnlocked(t, cfg.Dir)
}

func TestOpenFile_Foreign(t *testing.T) {
	t.Parallel()
	database := func(t *testing.T, path string, statements ...string) {
		t.Helper()
		db, err := sql.Open(driverName, dataSource(path, "rwc"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range append(statements, "CREATE TABLE t(x)") {
			if _, err := db.ExecContext(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, prepare := range map[string]func(t *testing.T, path string){
		"text": func(t *testing.T, path string) {
			mustWrite(t, path, "notes of somebody, longer than a header is: "+name128)
		},
		"short": func(t *testing.T, path string) { mustWrite(t, path, "SQLite format 3\x00") },
		"other_program": func(t *testing.T, path string) {
			database(t, path)
		},
		"other_version": func(t *testing.T, path string) {
			database(t, path, "PRAGMA application_id = 1347180869", "PRAGMA user_version = 7")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, t.TempDir())
			path := filepath.Join(cfg.Dir, fileName)
			prepare(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if f, err := openFile(t.Context(), cfg); !errors.Is(err, ErrForeignFile) {
				t.Errorf("openFile = %v, %v; want ErrForeignFile", f, err)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("the file was changed (%v)", err)
			}
			checkUnlocked(t, cfg.Dir)
		})
	}
}

const name128 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func testConfig(t *testing.T, dir string) Config {
	t.Helper()
	cfg, err := Config{Dir: dir}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
