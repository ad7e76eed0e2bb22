package wordpiece

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

var words = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "the", "un", "##aff", "##able", "play", "##ing", "##s",
	".", ",", "$", "cafe", "记", "忆", "b", "##b", "i", "##stan", "一"}

func made(tb testing.TB, change func(map[string]any)) (*Tokenizer, error) {
	tb.Helper()
	vocabulary := map[string]int{}
	var added []map[string]any
	for id, word := range words {
		vocabulary[word] = id
		if strings.HasPrefix(word, "[") {
			added = append(added, map[string]any{"id": id, "content": word, "special": true, "normalized": false})
		}
	}
	file := map[string]any{
		"added_tokens":  added,
		"normalizer":    map[string]any{"type": "BertNormalizer", "lowercase": true},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"model":         map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 10, "vocab": vocabulary},
		"truncation":    map[string]any{"max_length": 3},
		"padding":       map[string]any{"strategy": map[string]any{"Fixed": 128}},
	}
	if change != nil {
		change(file)
	}
	content, err := json.Marshal(file)
	if err != nil {
		tb.Fatal(err)
	}
	return New(content)
}

func TestTokenizer_Encode(t *testing.T) {
	t.Parallel()
	tk, err := made(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text string
		want string
	}{
		{"", ""},
		{" \t\n\u3000", ""},
		{"the", "the"},
		{"THE the", "the the"},
		{"unaffable", "un ##aff ##able"},
		{"plays, playing.", "play ##s , play ##ing ."},
		{"playx the", "[UNK] the"},
		{"a$.a", "a $ . a"},
		{"café CAFE\u0301", "cafe cafe"},
		{"记忆记", "记 忆 记"},
		{"a记a", "a 记 a"},
		{"İstan istan", "i ##stan i ##stan"},
		{"p\u200blay\x00s \ufeffthe\u00adre", "play ##s [UNK]"},
		{"the[SEP]the [MASK]", "the [SEP] the [MASK]"},
		{"[sep]", "[UNK] [UNK] [UNK]"},
		{"bbbbbbbbbb bbbbbbbbbbb", "b ##b ##b ##b ##b ##b ##b ##b ##b ##b [UNK]"},
		{"the \xff\xfe the", "the the"},
		{"\u4e00", "一"},
	} {
		want := []int32{2}
		for w := range strings.FieldsSeq(tc.want) {
			want = append(want, int32(slices.Index(words, w)))
		}
		if got := tk.Encode(tc.text, 256); !slices.Equal(got, append(want, 3)) {
			t.Errorf("%q: %v, want %v", tc.text, got, want)
		}
	}
}

func TestTokenizer_Encode_limit(t *testing.T) {
	t.Parallel()
	tk, err := made(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strings.Repeat("unaffable ", 100_000), strings.Repeat("[MASK]", 1000), strings.Repeat("b", 10) + strings.Repeat(" a", 500)} {
		whole := tk.Encode(text, 1<<30)
		for _, limit := range []int{2, 3, 4, 5, 6, 7, 8, 256} {
			got := tk.Encode(text, limit)
			if len(got) != limit || !slices.Equal(got[:limit-1], whole[:limit-1]) || got[limit-1] != 3 {
				t.Errorf("limit %d: %v", limit, got)
			}
		}
	}
}

func TestNew_refused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(map[string]any){
		"model":         func(f map[string]any) { f["model"].(map[string]any)["type"] = "Unigram" },
		"normalizer":    func(f map[string]any) { f["normalizer"] = map[string]any{"type": "Lowercase"} },
		"no_normalizer": func(f map[string]any) { f["normalizer"] = nil },
		"splitting":     func(f map[string]any) { f["pre_tokenizer"] = map[string]any{"type": "Metaspace"} },
		"vocabulary":    func(f map[string]any) { f["model"].(map[string]any)["vocab"] = map[string]int{"a": 1} },
		"negative":      func(f map[string]any) { f["model"].(map[string]any)["vocab"].(map[string]int)["a"] = -1 },
	} {
		if _, err := made(t, change); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzTokenizer_Encode(f *testing.F) {
	tk, err := made(f, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("the café 记忆 [SEP] \xff", 7)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 2 + max(0, limit)%300
		ids := tk.Encode(text, limit)
		if len(ids) < 2 || len(ids) > limit || ids[0] != 2 || ids[len(ids)-1] != 3 {
			t.Fatalf("%q, %d: %v", text, limit, ids)
		}
		for _, id := range ids {
			if id < 0 || int(id) >= tk.Size() {
				t.Fatalf("%q: %v", text, ids)
			}
		}
	})
}
