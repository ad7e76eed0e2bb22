package conflict

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Phrases of several words that have a short form, or that are written in one
// word as a noun and in two as a verb. They are brought to one form before a
// statement is cut into words, in English, where they are common.
var phraseForms = buildPhraseForms()

func buildPhraseForms() map[string]string {
	m := map[string]string{
		"two-factor authentication": "2FA", "two factor authentication": "2FA", "multi-factor authentication": "MFA",
		"continuous integration": "CI", "service level agreement": "SLA", "pull request": "PR", "pull requests": "PRs", "merge request": "MR", "merge requests": "MRs",
		"availability zone": "AZ", "availability zones": "AZs", "user interface": "UI", "command line": "CLI", "command-line interface": "CLI",
		"virtual private network": "VPN", "single sign-on": "SSO", "continuous deployment": "CD", "infrastructure as code": "IaC",
	}
	for _, p := range []string{"time out", "log in", "sign in", "set up", "roll back", "back up", "shut down", "roll out", "clean up", "start up", "fail over", "check out", "hand over", "take over"} {
		v, particle, _ := strings.Cut(p, " ")
		for _, e := range []string{"", "s"} {
			m[v+e+" "+particle] = v + particle
		}
	}
	return m
}

// phraseStarts are the phrases by their first word, longest first.
var phraseStarts = func() map[string][]string {
	m := make(map[string][]string)
	for p := range phraseForms {
		w := p[:wordEnd(p, 0)]
		m[w] = append(m[w], p)
	}
	for _, list := range m {
		slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	}
	return m
}()

var cronPattern = regexp.MustCompile("(?:\\b(?:on|with|under|by)?\\s*(?:the|a)?\\s*cron(?:\\s+(?:schedule|expression|entry))?\\s*)?[`\"']?(\\d{1,2}) (\\d{1,2}) \\* \\* (\\*|\\d)[`\"']?")

var cronDays = [...]string{"Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays"}

// oneForm rewrites the phrases of a statement that have one form, and cron
// schedules of a time a day or a day of the week.
func oneForm(s string) string {
	if strings.Contains(s, " * * ") {
		s = cronPattern.ReplaceAllStringFunc(s, func(m string) string {
			p := cronPattern.FindStringSubmatch(m)
			when := "daily"
			if p[3] != "*" {
				if p[3][0] > '7' {
					return m
				}
				when = "on " + cronDays[p[3][0]-'0']
			}
			return fmt.Sprintf(" %s at %02s:%02s", when, p[2], p[1])
		})
	}
	lower := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
	var out strings.Builder
	from := 0
	for i := 0; i < len(lower); {
		end := wordEnd(lower, i)
		if end == i {
			_, n := utf8.DecodeRuneInString(lower[i:])
			i += n
			continue
		}
		for _, p := range phraseStarts[lower[i:end]] {
			if strings.HasPrefix(lower[i:], p) && edge(lower, i+len(p)) {
				out.WriteString(s[from:i])
				out.WriteString(phraseForms[p])
				from = i + len(p)
				end = from
				break
			}
		}
		i = end
	}
	if from == 0 {
		return s
	}
	out.WriteString(s[from:])
	return out.String()
}
