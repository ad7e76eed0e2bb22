package text

import (
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	t.Parallel()
	jwt := "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	for _, held := range []string{
		"AWS key " + "AKIA" + "IOSFODNN7EXAMPLE", "use ASIA" + "QWERTYUIOPASDFGH for staging", "Authorization: Bearer " + jwt,
		"-----BEGIN RSA PRIVATE KEY-----\nMIIEow", "-----BEGIN PRIVATE KEY-----", "token ghp_" + strings.Repeat("a1B2", 9), "xoxb-" + "1234567890-abcdef",
		"OPENAI_API_KEY=sk-" + strings.Repeat("x9", 14), "postgres://app:hunter2x@db-3:5432/main",
		"密码：s3cr3t_12345", "password: s3cr3t_12345", "Das Passwort: Xk29-vv81", "رمز عبور: s3cr3t_12345", "пароль = Qz81kkP2", `{"password":"tr0ub4dor&3"}`, "DB_PASSWORD=Xy77pq90zz", "the api key: `9f8e7d6c5b4a3210`.",
	} {
		if Secret(held) == "" {
			t.Errorf("%q holds a secret", held)
		}
	}
	for _, prose := range []string{
		"", "Passwords are hashed with argon2id.", "Rotate the API key every 90 days", "The password: ask Sara", "password: kv/billing/2027", "The database password lies in the vault under secret/db-prod.",
		"password: ${DB_PASSWORD_V2}", "Secret: <your-key-2027>", "access token: 15minutes", "password: ********12", "API key: 2027-03-01", "密码每九十天更换一次", "密码：请问管理员", "رمز عبور هر ۹۰ روز عوض می‌شود", "The AKIA prefix marks AWS access keys.",
		"JWTs begin with eyJ and have three parts.", "Commit 9f8e7d6c5b4a reverted it", "See https://example.org:8443/a@b", "Das Passwort: steht im Tresor", "secretary: Anna1985x lives there", "postgres://app:${PASSWORD}@db/main", "Never write -----BEGIN CERTIFICATE----- into notes",
	} {
		if kind := Secret(prose); kind != "" {
			t.Errorf("%q is taken for %s", prose, kind)
		}
	}
}

func BenchmarkSecret(b *testing.B) {
	s := strings.Repeat("The gateway retries failed uploads three times, see build 4711. ", 3)
	for b.Loop() {
		Secret(s)
	}
}
