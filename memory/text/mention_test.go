package text

import "testing"

func TestPhrase_In(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		phrase, in string
		want       bool
	}{
		{"gateway", "The Gateway listens on port 8080", true},
		{"gateway", "the gateways listen", false},
		{"the  gateway", "restart the\ngateway.", true},
		{"port 80", "The gateway listens on port 8080", false},
		{"port 80", "port 80, port 8080", true},
		{"1.2", "version 1.2.3", false}, {"1.2", "version 11.2", false}, {"2.3", "1.2.3", false}, {"1.2", "It is at 1.2.", true},
		{"redis", "redis:6379 is the cache", true}, {"us-east", "in us-east-1", true},
		{"C++", "written in C++17 or C++", true},
		{"Zoë", "zoë said so", true},
		{"کتاب‌ها", "كتابها در قفسه است", true},
		{"پورت ۸۰", "درگاه روی پورت 8080 است", false}, {"پورت ۸۰", "پورت 80 باز است", true},
		{"漢字", "これは漢字です", true}, {"仮名", "これは漢字です", false},
		{"🚀", "launch 🚀 day", true},
		{"", "anything", false}, {"\u200b", "any\u200bthing", false}, {"x", "", false},
		{"aa", "aaa aa", true},
	} {
		if got := NewPhrase(tc.phrase).In(tc.in); got != tc.want {
			t.Errorf("%q in %q: %v", tc.phrase, tc.in, got)
		}
	}
}
