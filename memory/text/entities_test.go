package text

import (
	"strings"
	"testing"
)

func TestEntities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"The service uses Redis for sessions.", "redis"},
		{"We deploy on Monday. Never deploy in March.", ""},
		{"Production runs on AWS eu-central-1.", "aws|eu-central-1"},
		{"CI runs on GitHub Actions.", "ci|github|actions"},
		{"Sara's team owns it, and Tom took over the billing service from Sara.", "sara|tom"},
		{"`parseConfig` throws `ConfigError` when E_CONN_RESET is set.", "parseconfig|configerror|e_conn_reset"},
		{"Notes live in /etc/shipit/config.yaml", "/etc/shipit/config.yaml|etc/shipit/config.yaml"},
		{"It works with New York office.", "new york|new|york"},
		{"生产环境使用MySQL和Redis。", "mysql|redis"},
		{"سرویس جستجو روی nginx است", "nginx"},
		{"Die Schnittstelle für Bestellungen ist öffentlich, und der Dienst nutzt AWS.", "aws"},
		{"Сервис написан на Go, его ведёт Иван.", "go|иван"},
		{"THE SERVER IS DOWN AGAIN NOW", ""},
		{"I think that he knows.", ""},
		{"read-only and state-of-the-art and/or", ""},
		{"uteke-cloud-dev is up", "uteke-cloud-dev"},
	} {
		got := strings.Join(Entities(c.in), "|")
		if c.in == "Notes live in /etc/shipit/config.yaml" {
			if !strings.Contains(got, "etc/shipit/config.yaml") {
				t.Errorf("Entities(%q) = %s", c.in, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("Entities(%q)\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	for _, w := range []string{"the", "und", "está", "что", "است", "在", "是的", "입니다", "dont", "है"} {
		if !Stop(Normalize(w)) {
			t.Errorf("Stop(%q) = false", w)
		}
	}
	for _, w := range []string{"redis", "war", "port", "部署", "near", "never", "8080", "", "reply", "使用"} {
		if Stop(w) {
			t.Errorf("Stop(%q) = true", w)
		}
	}
	for w := range stopWords {
		if Normalize(w) != w {
			t.Errorf("stop word %q is not in search form", w)
		}
	}
}

func TestEntities_productNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want, never string }{
		{"The team moved from GitLab to Forgejo.", "gitlab|forgejo", "the|team"},
		{"We chose ClickHouse over BigQuery for the TTL.", "clickhouse|bigquery|ttl", "we"},
		{"Call retryCount before maxOpenConns.", "retrycount|maxopenconns", "call"},
		{"It uses Prometheus, and OpenTelemetry too.", "prometheus|opentelemetry", "it"},
		{"This is the SLA of the EU region.", "sla|eu", "this"},
	} {
		got := strings.Join(Entities(c.in), "|")
		for _, w := range strings.Split(c.want, "|") {
			if !strings.Contains("|"+got+"|", "|"+w+"|") {
				t.Errorf("Entities(%q) = %s, without %s", c.in, got, w)
			}
		}
		for _, w := range strings.Split(c.never, "|") {
			if strings.Contains("|"+got+"|", "|"+w+"|") {
				t.Errorf("Entities(%q) = %s, with %s", c.in, got, w)
			}
		}
	}
}
