package embedding

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// modelDir returns the folder of the real model, or skips the test.
func modelDir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("POLYPHONY_MODEL_DIR")
	if dir == "" {
		tb.Skip("POLYPHONY_MODEL_DIR is not set: no weights (recall/embedding/fetch-model.sh makes the folder)")
	}
	return dir
}

func openModel(tb testing.TB, opts Options) *Model {
	tb.Helper()
	m, err := Open(modelDir(tb), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	return m
}

// madeWords is the vocabulary of the models made here.
var madeWords = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "team", "decided", "to", "keep", "release",
	"notes", "in", "english", "and", "green", "ideas", "sleep", "plan", "##s", "##ning", ".", ","}

func madeTokenizer() map[string]any {
	vocabulary := map[string]int{}
	var added []map[string]any
	for id, word := range madeWords {
		vocabulary[word] = id
		if word[0] == '[' {
			added = append(added, map[string]any{"id": id, "content": word, "special": true, "normalized": false})
		}
	}
	return map[string]any{
		"added_tokens":  added,
		"normalizer":    map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": true},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"model":         map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
	}
}

// made returns the files of a tiny model: a graph that only looks words up, in
// a table of random numbers.
func made(tb testing.TB, dimensions int, seed uint64) map[string][]byte {
	tb.Helper()
	tokenizer, err := json.Marshal(madeTokenizer())
	if err != nil {
		tb.Fatal(err)
	}
	return map[string][]byte{tokenizerFile: tokenizer, weightsFile: madeGraph(dimensions, seed)}
}

func madeGraph(dimensions int, seed uint64) []byte {
	text := func(b []byte, num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
	}
	number := func(b []byte, num protowire.Number, n int) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(n))
	}
	message := func(b []byte, num protowire.Number, m []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), m)
	}
	value := func(name string, kind int, dims ...any) []byte {
		var shape []byte
		for _, d := range dims {
			if n, ok := d.(int); ok {
				shape = message(shape, 1, number(nil, 1, n))
			} else {
				shape = message(shape, 1, text(nil, 2, d.(string)))
			}
		}
		return message(text(nil, 1, name), 2, message(nil, 1, message(number(nil, 1, kind), 2, shape)))
	}
	random := rand.New(rand.NewPCG(seed, 1))
	raw := make([]byte, 0, 4*len(madeWords)*dimensions)
	for range len(madeWords) * dimensions {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(random.Float32()-.5))
	}
	table := message(text(number(number(number(nil, 1, len(madeWords)), 1, dimensions), 2, 1), 8, "table"), 9, raw)
	node := text(text(text(text(nil, 1, "table"), 1, "input_ids"), 2, "last_hidden_state"), 4, "Gather")
	graph := message(message(text(nil, 2, "made"), 1, node), 5, table)
	graph = message(graph, 11, value("input_ids", 7, "batch", "sequence"))
	graph = message(graph, 12, value("last_hidden_state", 1, "batch", "sequence", dimensions))
	return message(message(number(nil, 1, 8), 7, graph), 8, number(text(nil, 1, ""), 2, 17))
}

// write puts files, given by their slashed names, into a new folder.
func write(tb testing.TB, files map[string][]byte) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}
