package memory

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// This file compares what is derived with what it is derived from: the lexical
// index with its frequencies and totals, the index of episodes, the vectors,
// their sign bits and their index in the file. What does not agree can be made
// again, except for damaged pages.

// rebuildBatch is how many index rows are written together.
const rebuildBatch = 4096

// Doctor compares everything derived with the facts and, when asked, makes it
// agree, in one transaction. It takes about as long as indexing the workspace
// did; a repair holds other writes back for as long. Vectors that are none are
// dropped, and their facts wait for new ones.
//
// Errors: StoreCorrupt (pages that cannot even be read), Unavailable.
func (s *Store) Doctor(ctx context.Context, req record.Doctor) (record.DoctorReport, error) {
	found, err := s.examine(ctx)
	if err != nil || !req.Repair || len(found.Findings) == 0 {
		found.Stamp(record.RequestHash(record.KindDoctor, req))
		return found, err
	}
	_, err = apply(ctx, s, record.KindDoctor, req, func(t *tx) (struct{}, error) { return struct{}{}, t.repair(found.Findings) })
	if err != nil {
		return found, err
	}
	for left := true; left; {
		if left, err = s.IndexVectors(ctx, rebuildBatch); err != nil {
			return found, err
		}
	}
	after, err := s.examine(ctx)
	for i, f := range found.Findings {
		found.Findings[i].Repaired = !slices.ContainsFunc(after.Findings, func(g record.Finding) bool { return g.What == f.What })
	}
	found.OK = after.OK
	found.Stamp(record.RequestHash(record.KindDoctor, req))
	return found, err
}

// examine looks at one snapshot.
func (s *Store) examine(ctx context.Context) (record.DoctorReport, error) {
	r := record.DoctorReport{Workspace: s.workspace, Findings: []record.Finding{}}
	err := s.View(ctx, func(v *View) error {
		for _, look := range []func(*record.DoctorReport) error{v.examinePages, v.examineIndex, v.examineEpisodes, v.examineVectors} {
			if err := look(&r); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return record.Wrap(record.Unavailable, err, "the caller gave up")
			}
		}
		return nil
	})
	r.OK = err == nil && len(r.Findings) == 0
	return r, err
}

func found(r *record.DoctorReport, what string, n int64, detail string) {
	if n > 0 {
		r.Findings = append(r.Findings, record.Finding{What: what, Count: n, Detail: detail})
	}
}

func (v *View) examinePages(r *record.DoctorReport) error {
	bad, err := v.integrity()
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		found(r, record.FindingPages, int64(len(bad)), bad[0])
	}
	var orphans int64
	if err := v.row("SELECT count(*) FROM pragma_foreign_key_check").Scan(&orphans); err != nil {
		return err
	}
	found(r, record.FindingReferences, orphans, "rows that refer to rows that are not there")
	return nil
}

// fingerprint sums the terms of a row in a way that does not depend on their
// order, so that a whole index is compared with one number a row.
type fingerprint uint64

func (f *fingerprint) add(column, term string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(column))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(term))
	*f += fingerprint(h.Sum64())
}

func fingerprintOf(columns map[string]string) fingerprint {
	var f fingerprint
	for column, terms := range columns {
		all := strings.Fields(terms)
		slices.Sort(all)
		for _, term := range slices.Compact(all) {
			f.add(column, term)
		}
	}
	return f
}

// eachIndexed gives every fact's row and what the index must hold of it.
func eachIndexed(q queryer, do func(seq int64, x indexedText) error) error {
	rows, err := q.query("SELECT f.seq, f.domain_id, d.name, f.topic, f.topic_key, f.content FROM facts f JOIN domains d ON d.id = f.domain_id ORDER BY f.seq")
	_, err = collect(rows, err, func(r scanner) (_ struct{}, err error) {
		var seq, domain int64
		var name, topic, topicKey, content string
		if err := r.Scan(&seq, &domain, &name, &topic, &topicKey, &content); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, do(seq, indexText(domain, name, topic, topicKey, content))
	})
	return err
}

func (v *View) examineIndex(r *record.DoctorReport) error {
	want := map[int64]fingerprint{}
	terms := map[string]int64{}
	tokens := int64(0)
	err := eachIndexed(v, func(seq int64, x indexedText) error {
		want[seq] = fingerprintOf(map[string]string{"topic": x.topic, "content": x.content, "scope": x.domainScope + " " + x.topicScope})
		for _, term := range x.distinct {
			terms[term]++
		}
		tokens += int64(x.tokens)
		return nil
	})
	if err != nil {
		return err
	}
	r.Facts = int64(len(want))

	have, err := v.indexFingerprints("fact_index")
	if err != nil {
		return err
	}
	compareRows(r, record.FindingIndexRows, want, have)

	rows, err := v.query("SELECT term, df FROM terms WHERE df <> 0 ORDER BY term")
	wrong := int64(0)
	_, err = collect(rows, err, func(row scanner) (_ struct{}, err error) {
		var term string
		var df int64
		if err := row.Scan(&term, &df); err != nil {
			return struct{}{}, err
		}
		if terms[term] != df {
			wrong++
		}
		delete(terms, term)
		return struct{}{}, nil
	})
	if err != nil {
		return err
	}
	found(r, record.FindingFrequencies, wrong+int64(len(terms)), "terms with another count than facts have")
	stats, err := indexStats(v)
	if err != nil {
		return err
	}
	if stats.Docs != r.Facts || stats.Tokens != tokens {
		found(r, record.FindingTotals, 1, fmt.Sprintf("%d facts and %d tokens are counted, %d and %d are there", stats.Docs, stats.Tokens, r.Facts, tokens))
	}
	return nil
}

// compareRows counts the rows of an index that are not as they must be.
func compareRows(r *record.DoctorReport, what string, want, have map[int64]fingerprint) {
	var missing, differ, extra int64
	for seq, f := range want {
		switch g, ok := have[seq]; {
		case !ok:
			missing++
		case f != g:
			differ++
		}
	}
	for seq := range have {
		if _, ok := want[seq]; !ok {
			extra++
		}
	}
	found(r, what, missing+differ+extra, fmt.Sprintf("%d missing, %d of other text, %d of nothing", missing, differ, extra))
}

// indexFingerprints reads what an FTS5 table of ours holds of every row. A row
// without a single term is in it too.
func (v *View) indexFingerprints(table string) (map[int64]fingerprint, error) {
	have := map[int64]fingerprint{}
	rows, err := v.query("SELECT id FROM " + table + "_docsize ORDER BY id")
	_, err = collect(rows, err, func(r scanner) (_ struct{}, err error) {
		var seq int64
		err = r.Scan(&seq)
		have[seq] = 0
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	// The table is the connection's own and writes nothing to the file.
	terms := "temp." + table + "_terms"
	if _, err := v.conn.exec(v.ctx, "CREATE VIRTUAL TABLE IF NOT EXISTS "+terms+" USING fts5vocab(main, "+table+", instance)"); err != nil {
		return nil, err
	}
	type instance struct {
		seq          int64
		column, term string
	}
	// Where the table keeps positions, a term comes once for each: one after
	// the other.
	var last instance
	rows, err = v.query("SELECT doc, col, term FROM " + terms)
	_, err = collect(rows, err, func(r scanner) (_ struct{}, err error) {
		var i instance
		if err := r.Scan(&i.seq, &i.column, &i.term); err != nil || i == last {
			return struct{}{}, err
		}
		last = i
		f := have[i.seq]
		f.add(i.column, i.term)
		have[i.seq] = f
		return struct{}{}, nil
	})
	return have, err
}

// eachEpisode gives every episode and what its index must hold of it.
func eachEpisode(q queryer, do func(pendingEpisode) error) error {
	rows, err := q.query("SELECT e.seq, e.task_id, c.content FROM episodes e JOIN episode_contents c ON c.ref = e.content_ref ORDER BY e.seq")
	_, err = collect(rows, err, func(r scanner) (_ struct{}, err error) {
		var e pendingEpisode
		var task, content string
		if err := r.Scan(&e.seq, &task, &content); err != nil {
			return struct{}{}, err
		}
		e.content, e.scope = text.IndexForm(content), taskToken(task)
		return struct{}{}, do(e)
	})
	return err
}

func (v *View) examineEpisodes(r *record.DoctorReport) error {
	want := map[int64]fingerprint{}
	err := eachEpisode(v, func(e pendingEpisode) error {
		want[e.seq] = fingerprintOf(map[string]string{"content": e.content, "scope": e.scope})
		return nil
	})
	if err != nil {
		return err
	}
	have, err := v.indexFingerprints("episode_index")
	if err != nil {
		return err
	}
	compareRows(r, record.FindingEpisodeRows, want, have)
	return nil
}

func (v *View) examineVectors(r *record.DoctorReport) error {
	bad, bits, n, err := vectorFaults(v)
	if err != nil {
		return err
	}
	r.Vectors = n
	found(r, record.FindingVectors, int64(len(bad)), "vectors of another size or of another text than their facts'")
	found(r, record.FindingVectorBits, int64(len(bits)), "vectors whose sign bits are missing or not theirs")
	if !v.store.indexed {
		return nil
	}
	var h record.Health
	differ, err := v.vectorDrift(&h, true)
	if err != nil {
		return err
	}
	var kept int64
	if err := v.row("SELECT count(*) FROM embedding_bits").Scan(&kept); err != nil {
		return err
	}
	found(r, record.FindingVectorIndex, differ+max(0, h.VectorsIndexed-kept), "vectors that sqlite-vec's index lacks, has otherwise or has for nothing")
	return nil
}

// vectorFaults returns the rows whose vector is none, and the sign bits of
// those whose stored ones are not theirs.
func vectorFaults(q queryer) (bad []int64, bits []packed, n int64, err error) {
	rows, err := q.query(`SELECT e.seq, e.model, f.domain_id, e.text_hash, e.vector, f.content, coalesce(b.model, ''), coalesce(b.domain_id, 0), coalesce(b.bits, x'')
		FROM embeddings e JOIN facts f ON f.seq = e.seq LEFT JOIN embedding_bits b ON b.seq = e.seq ORDER BY e.seq`)
	_, err = collect(rows, err, func(r scanner) (_ struct{}, err error) {
		var own, stored packed
		var hash, vector []byte
		var content string
		if err := r.Scan(&own.seq, &own.model, &own.domain, &hash, &vector, &content, &stored.model, &stored.domain, &stored.bits); err != nil {
			return struct{}{}, err
		}
		n++
		sum := sha256.Sum256([]byte(content))
		decoded := decodeVector(vector)
		if string(hash) != string(sum[:16]) || !validVector(decoded) {
			bad = append(bad, own.seq)
			return struct{}{}, nil
		}
		own.bits = signBits(decoded)
		if own.model != stored.model || own.domain != stored.domain || string(own.bits) != string(stored.bits) {
			bits = append(bits, own)
		}
		return struct{}{}, nil
	})
	return bad, bits, n, err
}

// repair makes again what the findings name.
func (t *tx) repair(findings []record.Finding) error {
	var index, episodes, vectors, vectorIndex bool
	for _, f := range findings {
		switch f.What {
		case record.FindingIndexRows, record.FindingFrequencies, record.FindingTotals:
			index = true
		case record.FindingEpisodeRows:
			episodes = true
		case record.FindingVectors, record.FindingVectorBits:
			vectors = true
		case record.FindingVectorIndex:
			vectorIndex = true
		}
	}
	if index {
		if err := t.rebuildIndex(); err != nil {
			return err
		}
	}
	if episodes {
		if err := t.rebuildEpisodes(); err != nil {
			return err
		}
	}
	if vectors {
		if err := t.repairVectors(); err != nil {
			return err
		}
	}
	if vectorIndex {
		// IndexVectors makes it again after the commit.
		return t.exec("INSERT INTO meta (key, value) VALUES ('vector_index_behind', 0) ON CONFLICT (key) DO UPDATE SET value = 0")
	}
	return nil
}

// refill writes rows of an index that was emptied, many at a time.
type refill struct {
	t     *tx
	batch pendingIndex
	rows  int
}

// added writes the batch when it is full.
func (r *refill) added() error {
	if r.rows++; r.rows%rebuildBatch != 0 {
		return nil
	}
	return r.flush()
}

func (r *refill) flush() error {
	err := r.batch.flush(r.t)
	r.batch = pendingIndex{}
	return err
}

// rebuildIndex writes the whole lexical index anew, except for what the open
// transaction has yet to index and will.
func (t *tx) rebuildIndex() error {
	waiting := map[int64]bool{}
	for _, d := range t.pending().docs {
		waiting[d.seq] = true
	}
	for _, query := range []string{
		"INSERT INTO fact_index (fact_index) VALUES ('delete-all')", "DELETE FROM terms", "UPDATE index_stats SET docs = 0, tokens = 0 WHERE id = 1",
	} {
		if err := t.exec(query); err != nil {
			return err
		}
	}
	r := refill{t: t}
	err := eachIndexed(t, func(seq int64, x indexedText) error {
		if waiting[seq] {
			return nil
		}
		r.batch.add(seq, x)
		return r.added()
	})
	if err != nil {
		return err
	}
	return r.flush()
}

// rebuildEpisodes does the same for the index of episodes.
func (t *tx) rebuildEpisodes() error {
	waiting := map[int64]bool{}
	for _, e := range t.pending().episodes {
		waiting[e.seq] = true
	}
	if err := t.exec("INSERT INTO episode_index (episode_index) VALUES ('delete-all')"); err != nil {
		return err
	}
	r := refill{t: t}
	err := eachEpisode(t, func(e pendingEpisode) error {
		if waiting[e.seq] {
			return nil
		}
		r.batch.episodes = append(r.batch.episodes, e)
		return r.added()
	})
	if err != nil {
		return err
	}
	return r.flush()
}

func (t *tx) repairVectors() error {
	bad, bits, _, err := vectorFaults(t)
	if err != nil {
		return err
	}
	for _, seq := range bad {
		if err := t.exec("DELETE FROM embeddings WHERE seq = ?", seq); err != nil {
			return err
		}
		if t.writer.store.model == "" {
			continue
		}
		t.writer.queued = true
		if err := t.exec("INSERT INTO embedding_queue (seq) VALUES (?) ON CONFLICT (seq) DO NOTHING", seq); err != nil {
			return err
		}
	}
	for _, p := range bits {
		if t.writer.store.indexed {
			// The trigger that follows new sign bits must not find a row of theirs.
			if err := t.exec("DELETE FROM embedding_index WHERE seq = ?", p.seq); err != nil {
				return err
			}
		}
		if err := t.writeBits(p); err != nil {
			return err
		}
	}
	return nil
}
