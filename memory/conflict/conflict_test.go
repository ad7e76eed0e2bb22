package conflict

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func classify(old, new string) Verdict {
	return Classify(Statement{Content: old, Topic: "t", Domain: "d"}, Statement{Content: new, Topic: "t", Domain: "d"})
}

// caught stands for contradiction or uncertain: the opposition was seen.
const caught Relation = "caught"

// apartFrom stands for compatible or uncertain: nothing is retired.
const apartFrom Relation = "apart"

func check(t *testing.T, want Relation, old, new string) {
	t.Helper()
	v := classify(old, new)
	ok := v.Relation == want
	switch want {
	case caught:
		ok = v.Relation == Contradiction || v.Relation == Uncertain
	case apartFrom:
		ok = v.Relation == Compatible || v.Relation == Uncertain
	}
	if !ok {
		t.Errorf("%s by %s (%s), want %s\n\told %s\n\tnew %s", v.Relation, v.Rule, v.Reason, want, old, new)
	}
	if v.Rule == "" || v.Reason == "" {
		t.Errorf("a verdict without rule or reason: %+v", v)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want  Relation
		pairs [][2]string
	}{
		{Duplicate, [][2]string{
			{"port is 8080", "Port is 8080."},
			{"The cache holds entries for 5 minutes.", "The cache holds entries for 300 s"},
			{"Uploads are limited to 2 GB.", "uploads are limited to 2000 MB"},
			{"Builds take 90 s", "builds take 90000ms"},
			{"Use tabs, not spaces.", "use tabs - not spaces"},
			{"Before each release, run the smoke tests.", "Run the smoke tests before each release."},
			{"If the queue is full, the producer blocks.", "The producer blocks if the queue is full."},
			{"Telemetry is disabled by default.", "Telemetry is not enabled by default."},
			{"Force-push is forbidden on main.", "Force-push is not allowed on main"},
			{"The prod database is Postgres.", "The production db is PostgreSQL."},
			{"Guests can upload three files.", "Guests can upload 3 files"},
			{"Die Größe ist fest.", "Die Grösse ist fest"},
			{"Le délai est de 30 secondes", "Le délai est de 30 s."},
			{"Сервер стоит в Москве", "сервер стоит в Москве."},
			{"مهلت پاسخ ۳۰ ثانیه است", "مهلت پاسخ 30 ثانيه است."},
			{"接口超时是３０秒", "接口超时是30秒。"},
			{"サーバーは東京にある", "サーバーは東京にある。"},
			{"El límite es de 10 MB", "el límite es de 10 MB."},
		}},
		{Refinement, [][2]string{
			{"we use Redis", "we use Redis 7 for sessions"},
			{"Backups are taken every night.", "Backups are taken every night at 03:00 and kept for two weeks."},
			{"The cluster has at least 3 nodes.", "The cluster has 5 nodes."},
			{"Requests are limited to at most 10 MB.", "Requests are limited to 8 MB."},
			{"The gateway validates tokens.", "The gateway validates tokens with the public key of the issuer."},
			{"Passwords are hashed.", "Passwords are hashed with Argon2id."},
			{"We support Chrome and Firefox.", "We support Chrome and Firefox and Safari."},
			{"Images are built from commit 4be91d0.", "Images are built from commit 4be91d0c77a5e3f1b2d86a90c4417fe2a8d3b615."},
			{"Die Logs werden gesammelt.", "Die Logs werden gesammelt und 30 Tage aufgehoben."},
			{"Les sauvegardes sont chiffrées.", "Les sauvegardes sont chiffrées avec une clé par client."},
			{"Резервные копии шифруются.", "Резервные копии шифруются ключом клиента."},
			{"文件保存在云端。", "文件保存在云端，三十天后删除。"},
			{"فایل‌ها رمزنگاری می‌شوند", "فایل‌ها با کلید مشتری رمزنگاری می‌شوند"},
		}},
		{Contradiction, [][2]string{
			{"deploys to prod", "deploys to staging"},
			{"port is 8080", "port is 8081"},
			{"port 22", "port 49222"},
			{"deploys on Monday", "never deploys on Monday"},
			{"timeout 30s", "timeout 30m"},
			{"timeout is 30 s", "timeout is 45 s"},
			{"The retry limit is 5.", "The retry limit is 3."},
			{"The API is public.", "The API is private."},
			{"Telemetry is enabled.", "Telemetry is disabled."},
			{"Telemetry is enabled in the agent.", "Telemetry is not enabled in the agent."},
			{"Redis is used in production", "Redis is not used in production"},
			{"Reviews are mandatory for hotfixes.", "Reviews are optional for hotfixes."},
			{"The base image is alpine:3.19", "The base image is alpine:3.20"},
			{"Sara works at Acme.", "Sara works at Globex."},
			{"The default branch is main.", "The default branch is develop."},
			{"The proxy calls the limiter before the cache.", "The proxy calls the cache before the limiter."},
			{"Prefer tabs over spaces.", "Prefer spaces over tabs."},
			{"The cluster has at least 3 nodes.", "The cluster has 2 nodes."},
			{"Nightly builds run at 02:00.", "Nightly builds run at 04:30."},
			{"The service is written in Go.", "The service is written in Rust."},
			{"The site is hosted on Netlify.", "The site is hosted on Vercel."},
			{"The admin panel is a React app.", "It is not true that the admin panel is a React app."},
			{"The feature flag is on.", "The feature flag is off."},
			{"Traffic is served with TLS.", "Traffic is served without TLS."},
			{"Das Limit ist 10 MB.", "Das Limit ist 25 MB."},
			{"Die API ist öffentlich.", "Die API ist nicht öffentlich."},
			{"Les journaux sont chiffrés.", "Les journaux ne sont pas chiffrés."},
			{"El servicio es público.", "El servicio no es público."},
			{"Лимит равен 10 запросам.", "Лимит равен 20 запросам."},
			{"Тесты обязательны перед релизом.", "Тесты не обязательны перед релизом."},
			{"پورت سرویس ۸۰۸۰ است", "پورت سرویس ۸۰۹۰ است"},
			{"مهلت ۳۰ ثانیه است", "مهلت ۳۰ دقیقه است"},
			{"超时是30秒", "超时是60秒"},
			{"生产环境使用Redis", "生产环境不使用Redis"},
			{"サーバーはAWSで動いている", "サーバーはAWSで動いていない"},
			{"Sunucu açık", "Sunucu kapalı"},
			{"सर्वर का पोर्ट 8080 है", "सर्वर का पोर्ट 9090 है"},
		}},
		{caught, [][2]string{
			{"CI runs on Jenkins.", "CI no longer runs on Jenkins but on GitHub Actions."},
			{"We use Jenkins for CI.", "We use Buildkite for CI."},
			{"The standup is on Monday.", "The standup is on Tuesday."},
			{"Services must use TLS.", "Services may use TLS."},
			{"The vendor is Signadoo.", "The choice of Signadoo as the vendor is Signadoo was reversed."},
			{"Clients may retry payments.", "Clients must not retry payments."},
		}},
		{Compatible, [][2]string{
			{"Postgres for billing", "Redis for search"},
			{"prod is in Frankfurt", "staging is in Dublin"},
			{"Sara works at Acme", "Sara administers Acme's GitHub org"},
			{"service A uses Redis for cache", "service A uses Postgres for orders"},
			{"Alice is CEO", "Bob is co-CEO"},
			{"The read timeout is 30 s.", "The write timeout is 45 s."},
			{"Until March we ran Jira.", "We run YouTrack."},
			{"Sara used to own billing.", "Tom owns billing."},
			{"The Team plan costs $20 per seat.", "The Business plan costs $45 per seat."},
			{"In January the budget was 10000 euros.", "In February the budget was 12000 euros."},
			{"The orders service is written in Go.", "The load tests for the orders service are written in Python."},
			{"The index lives in Frankfurt.", "A copy of the index lives in Dublin."},
			{"The API uses OAuth.", "The internal API uses OAuth."},
			{"service A uses Redis", "service B uses Redis"},
			{"port is 8080", `Sara said that the port is 8080`},
			{"port is 8080", `"port is 8080"`},
			{"port is 8080", "is the port 8080?"},
			{"We run in Frankfurt.", "We might run in Dublin."},
			{"The first release shipped on time.", "The second release shipped on time."},
			{"Only admins can delete projects.", "Only admins can delete invoices, and projects with invoices stay."},
			{"Unit tests never touch the database.", "Integration tests touch the database."},
			{"Debug logs are kept in production.", "Debug logs are kept in staging."},
			{"Die Lese-API ist öffentlich.", "Die Schreib-API ist nicht öffentlich."},
			{"Le serveur de test est à Paris.", "Le serveur de production est à Lyon."},
			{"测试环境的端口是8080", "生产环境的端口是443"},
			{"王芳负责前端。", "陈强负责后端。"},
			{"Лимит для гостей 10 запросов.", "Лимит для партнёров 1000 запросов."},
			{"سرور آزمایشی روی پورت ۸۰۸۰ است", "سرور اصلی روی پورت ۴۴۳ است"},
			{"We support Python.", "We also support Ruby."},
			{"Sara likes tea.", "Sara likes short meetings."},
		}},
		{apartFrom, [][2]string{
			{"resume parsing is slow", "résumé parsing is slow"},
			{"We fixed bug 12.", "We fixed bug 13."},
			{"Ticket 123 is closed.", "Ticket 124 is closed."},
			{"Node 3 is down.", "Node 4 is down."},
			{"See ADR-0005 for the layout.", "See ADR-0006 for the layout."},
			{"The SDK supports Python 3.9.", "The SDK supports Python 3.10."},
			{"The timeout is 30 s.", "The timeout is 45 s for uploads."},
			{"We take daily backups.", "We take weekly backups."},
			{"Sara maintains the public API.", "Sara maintains the private API."},
			{"The public API uses keys.", "The private API uses keys."},
			{"The meeting on 3 May discussed the budget.", "The meeting on 10 May discussed the budget."},
			{"Sara manages Tom.", "Tom manages Sara."},
			{"Copy from the bucket to the disk.", "Copy from the disk to the bucket."},
			{"Deploy from main.", "Deploy to main."},
			{"The worker runs in eu-west-1 for tenants A.", "The worker runs in us-east-2 for tenants B."},
			{"Tool accepts YAML files.", "Tool accepts JSON files."},
			{"Services should use TLS.", "Services must use TLS."},
			{"The service was in Frankfurt.", "The service is in Frankfurt."},
			{"C is used for the driver.", "C++ is used for the driver."},
			{"We met on 3 May.", "We met on 10 May."},
			{"El límite es fijo", "El limite es fijo"},
		}},
	} {
		for _, p := range c.pairs {
			check(t, c.want, p[0], p[1])
		}
	}
}

func TestClassify_symmetric(t *testing.T) {
	t.Parallel()
	for _, p := range [][2]string{
		{"port is 8080", "Port is 8080."},
		{"timeout 30s", "timeout 30m"},
		{"deploys on Monday", "never deploys on Monday"},
		{"prod is in Frankfurt", "staging is in Dublin"},
		{"Telemetry is enabled.", "Telemetry is disabled."},
		{"The admin panel is a React app.", "It is not true that the admin panel is a React app."},
		{"生产环境使用Redis", "生产环境不使用Redis"},
	} {
		if a, b := classify(p[0], p[1]), classify(p[1], p[0]); a.Relation != b.Relation {
			t.Errorf("%q and %q: %s one way, %s the other", p[0], p[1], a.Relation, b.Relation)
		}
	}
}

// Polarity is read from whole words and kept (situation E15).
func TestClassify_negation(t *testing.T) {
	t.Parallel()
	check(t, apartFrom, "Deploy on Fridays.", "don't ever not deploy on Fridays")
	check(t, Contradiction, "don't ever not deploy on Fridays", "Don't deploy on Fridays.")
	check(t, apartFrom, "Good - whenever needed we can use it", "Good - never needed, we can use it elsewhere")
	if p := Parse(Statement{Content: "Good - whenever needed we can use it"}); len(p.tokens) == 0 || p.tokens[0].neg {
		t.Error("whenever is read as never")
	}
	for _, s := range []string{"not only tests", "nicht nur Tests", "no more than 5 tests", "非常快", "未来计划"} {
		for _, tok := range Parse(Statement{Content: s}).tokens {
			if tok.neg {
				t.Errorf("%q: %q is read as negated", s, tok.surface)
			}
		}
	}
}

func TestClassify_place(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		old, new Statement
		want     Relation
	}{
		{"repositories", Statement{"port is 8080", "ports", "repo:a/ops"}, Statement{"port is 8081", "ports", "repo:b/ops"}, Compatible},
		{"repository and workspace", Statement{"port is 8080", "ports", "repo:a/ops"}, Statement{"port is 8080", "ports", "ops"}, Compatible},
		{"short under other topics", Statement{"port is 8080", "gateway", "ops"}, Statement{"port is 8080", "database", "ops"}, Compatible},
		{"value under other topics", Statement{"port is 8080", "gateway", "ops"}, Statement{"port is 8081", "database", "ops"}, Compatible},
		{"full under other topics", Statement{"Billing uses Postgres for invoices", "db", "ops"}, Statement{"billing uses Postgres for invoices.", "billing", "ops"}, Duplicate},
		{"spelling of the topic", Statement{"port is 8080", "Ports", "Ops"}, Statement{"port is 8081", " ports", "ops"}, Contradiction},
	} {
		if v := Classify(c.old, c.new); v.Relation != c.want {
			t.Errorf("%s: %s by %s, want %s", c.name, v.Relation, v.Rule, c.want)
		}
	}
}

func TestCompare_long(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("The gateway keeps a long list of rules about retries and limits. ", 1000)
	if v := classify(long, long); v.Relation != Duplicate {
		t.Errorf("equal long texts: %s", v.Relation)
	}
	for _, other := range []string{long + "And one more.", long + "port 8080", strings.Replace(long, "long", "short", 1)} {
		switch v := classify(long, other); v.Relation {
		case Duplicate, Refinement, Contradiction:
			t.Errorf("long texts judged %s by %s", v.Relation, v.Rule)
		}
	}
}

func FuzzCompare(f *testing.F) {
	for _, p := range [][2]string{
		{"port is 8080", "Port is 8080."}, {"", ""}, {"not", "no"}, {"\xff", "\xfe"}, {"生产环境不使用", "生产ない"},
		{"it is not true that x", "x"}, {"1 2 3 s", "$1 m am pm"}, {"a'b'c", "l'é"}, {"> quote", "?"}, {"€5", "5 %"}, {"off", "plus ne plus"},
	} {
		f.Add(p[0], p[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		sa, sb := Statement{Content: a, Topic: "t"}, Statement{Content: b, Topic: "t"}
		pa, pb := Parse(sa), Parse(sb)
		for _, v := range []Verdict{Compare(pa, pb), Compare(pb, pa)} {
			if v.Rule == "" || v.Reason == "" {
				t.Fatalf("no rule for %q and %q", a, b)
			}
			if utf8.ValidString(a) && utf8.ValidString(b) && !utf8.ValidString(v.Reason) {
				t.Fatalf("reason %q", v.Reason)
			}
		}
		if v := Compare(pa, Parse(sa)); v.Relation != Duplicate {
			t.Fatalf("%q and itself: %s", a, v.Relation)
		}
		x, y := Compare(pa, pb).Relation, Compare(pb, pa).Relation
		if (x == Duplicate) != (y == Duplicate) {
			t.Fatalf("%q and %q: %s one way, %s the other", a, b, x, y)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	s := Statement{Content: "When the gateway calls an upstream service the read timeout is 30 s, after which the client gets a 504.", Topic: "timeouts"}
	b.ReportAllocs()
	for b.Loop() {
		Parse(s)
	}
}

func BenchmarkParse_long(b *testing.B) {
	s := Statement{Content: strings.Repeat("The gateway keeps rules about retries. ", 1680), Topic: "timeouts"}
	b.ReportAllocs()
	for b.Loop() {
		Parse(s)
	}
}

func BenchmarkCompare(b *testing.B) {
	parse := func(s string) *Parsed { return Parse(Statement{Content: s, Topic: "timeouts"}) }
	for name, p := range map[string][2]string{
		"value":     {"When the gateway calls an upstream service the read timeout is 30 s, after which the client gets a 504.", "When the gateway calls an upstream service the read timeout is 45 s, after which the client gets a 504."},
		"unrelated": {"When the gateway calls an upstream service the read timeout is 30 s, after which the client gets a 504.", "Lena will draft the plan for moving the orders database to the new cluster by Thursday."},
		"long":      {strings.Repeat("the gateway keeps rules about retries. ", 200), strings.Repeat("retries about rules keeps the gateway. ", 200)},
	} {
		b.Run(name, func(b *testing.B) {
			x, y := parse(p[0]), parse(p[1])
			b.ReportAllocs()
			for b.Loop() {
				Compare(x, y)
			}
		})
	}
}
