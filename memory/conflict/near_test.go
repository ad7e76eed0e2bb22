package conflict

import "testing"

// However near the model puts them, near-twins that differ in a number, name,
// environment, scope, polarity, person or object are never merged or retired.
func TestNear_twins(t *testing.T) {
	t.Parallel()
	for _, p := range [][2]string{
		{"Tom reviews the frontend.", "Tom reviews the backend."},
		{"Nina answers tickets from Basel.", "Nora answers tickets from Basel."},
		{"The cluster in Oslo has nine nodes and one load balancer.", "One load balancer and seven nodes make up the cluster in Oslo."},
		{"Nightly dumps of staging go to the archive bucket.", "Into the archive bucket go the nightly dumps of production."},
		{"Uploads by guests are scanned before they are stored.", "Before storing them we do not scan uploads by guests."},
		{"Exports above 10 MB are split into parts.", "We split exports into parts when they exceed 10 GB."},
		{"The mobile team ships on Tuesday after the review.", "After the review on Thursday the mobile team ships."},
		{"Only owners may rename a workspace.", "Owners may rename a workspace at any time."},
		{"Without a ticket nobody touches the router.", "With a ticket nobody touches the router."},
		{"Events go from Kafka to the lake.", "From the lake events go to Kafka."},
		{"The report is sent when the build fails.", "The report of the build is sent."},
		{"The image service resizes pictures before the upload.", "Pictures are resized by the image service after the upload."},
		{"Petra genehmigt Reisen ab 500 Euro.", "Reisen ab 600 Euro genehmigt Petra."},
		{"سرویس پرداخت شب‌ها خاموش است", "سرویس پرداخت شب‌ها خاموش نیست"},
		{"Operators must keep the access logs and must not delete old backups.", "Old backups must be deleted, and operators must not keep access logs."},
		{"李雷负责测试。", "李雷负责文档。"},
	} {
		for _, q := range [][2]string{p, {p[1], p[0]}} {
			old, new := Parse(Statement{q[0], "t", "d"}), Parse(Statement{q[1], "t", "d"})
			v := Near(Compare(old, new), old, new, 1)
			if v.Rule == "same-meaning" || v.Relation == Duplicate {
				t.Errorf("%s by %s (%s)\n\told %s\n\tnew %s", v.Relation, v.Rule, v.Reason, q[0], q[1])
			}
		}
	}
}

func TestNear_merges(t *testing.T) {
	t.Parallel()
	old := Parse(Statement{"Marta would rather get a weekly digest than single mails about the builds.", "t", "d"})
	new := Parse(Statement{"About the builds Marta prefers the digest of each week to single mails.", "t", "d"})
	v := Compare(old, new)
	if !Unsettled(v) {
		t.Fatalf("the rules settled it: %+v", v)
	}
	for _, c := range []struct {
		cosine float64
		want   Relation
	}{{0.2, v.Relation}, {0.95, Duplicate}} {
		if got := Near(v, old, new, c.cosine); got.Relation != c.want {
			t.Errorf("at %.2f %s by %s, want %s", c.cosine, got.Relation, got.Rule, c.want)
		}
	}
}
