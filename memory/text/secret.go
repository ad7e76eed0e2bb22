package text

import (
	"regexp"
	"strings"
	"unicode"
)

// secretForms are credentials that are known by their form, as their issuers
// document it. A text without the mark is not looked at further: expressions
// cost a hundred times as much.
var secretForms = []struct {
	kind, mark string
	form       *regexp.Regexp
}{
	{"a private key", "PRIVATE KEY", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----`)},
	{"an AWS access key", "AKIA", regexp.MustCompile(`\bAKIA[A-Z0-9]{16}\b`)},
	{"an AWS access key", "ASIA", regexp.MustCompile(`\bASIA[A-Z0-9]{16}\b`)},
	{"a JSON web token", "eyJ", regexp.MustCompile(`\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}`)},
	{"a GitHub token", "gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,}`)},
	{"a GitHub token", "github_pat_", regexp.MustCompile(`\bgithub_pat_\w{22,}`)},
	{"a Slack token", "xox", regexp.MustCompile(`\bxox[abeprs]-[A-Za-z0-9-]{10,}`)},
	{"an API key", "sk-", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{24,}`)},
	{"an API key", "k_live_", regexp.MustCompile(`\b[rs]k_live_[A-Za-z0-9]{16,}`)},
	{"an API key", "AIza", regexp.MustCompile(`\bAIza[\w-]{35}`)},
	{"a password in an address", "://", regexp.MustCompile(`\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/:@$<{*]{3,}@`)},
}

// secretLabel is a word for a credential, set off from what follows it as a
// label is from its value.
var secretLabel = regexp.MustCompile(`(?i)(?:password|passwd|passphrase|passcode|\bpwd|secret|secret[ _-]?key|api[ _-]?key|access[ _-]?key|(?:access|auth|bearer)[ _-]?token|` +
	`passwort|kennwort|mot de passe|contraseña|şifre|parola|пароль|密码|密碼|口令|パスワード|비밀번호|암호|رمز عبور|رمز|گذرواژه|کلمه عبور|كلمة المرور|كلمة السر|پاس ورڈ)` +
	"[\"'`]?\\s*[:=：＝]\\s*[\"'`]?([!-~]{8,})")

// Secret returns what kind of credential a text holds, "" for none: a key or
// token by its form, or a value that somebody labelled as a password and that
// no word is. Text about secrets, where they lie and how they are handled, holds
// none.
func Secret(s string) string {
	for _, f := range secretForms {
		if strings.Contains(s, f.mark) && f.form.MatchString(s) {
			return f.kind
		}
	}
	if !strings.ContainsAny(s, ":=：＝") {
		return ""
	}
	for _, m := range secretLabel.FindAllStringSubmatch(s, -1) {
		if random(strings.Trim(m[1], `"'.,;:!?)]}`+"`")) {
			return "a password or key"
		}
	}
	return ""
}

// amount is a number with its unit, or a date.
var amount = regexp.MustCompile(`^[0-9][0-9.:,-]*[A-Za-z]*$`)

// random reports whether a value looks made up rather than written: letters and
// at least two digits, at least eight characters, and no path, address,
// placeholder or amount.
func random(value string) bool {
	letters, digits := 0, 0
	for _, r := range value {
		switch {
		case unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		}
	}
	return len(value) >= 8 && letters >= 2 && digits >= 2 && !strings.ContainsAny(value, "/<>{}*") && !strings.HasPrefix(value, "$") && !amount.MatchString(value)
}
