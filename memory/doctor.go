package memory

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// This file compares what is derived from facts with the facts: the lexical
// index with its frequencies and totals, the vectors and their sign bits. What
// does not agree can be made again, except for damaged pages.

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
	s.vectors.forget()
	if s.model != "" {
		s.onQueued(s.workspace)
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
		for _, look := range []func(*record.DoctorReport) error{v.examinePages, v.examineIndex, v.examineVectors} {
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
	rows, err := v.query("SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
	bad, err := collect(rows, err, scanOne[string])
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

func (x indexedText) fingerprint() fingerprint {
	var f fingerprint
	for column, terms := range map[string]string{"topic": x.topic, "content": x.content, "scope": x.domainScope + " " + x.topicScope} {
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
		want[seq] = x.fingerprint()
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

	have, err := v.indexFingerprints()
	if err != nil {
		return err
	}
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
	found(r, record.FindingIndexRows, missing+differ+extra, fmt.Sprintf("%d missing, %d of other text, %d of no fact", missing, differ, extra))

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

// indexFingerprints reads what the index holds of every row. A row without a
// single term is in it too.
func (v *View) indexFingerprints() (map[int64]fingerprint, error) {
	have := map[int64]fingerprint{}
	rows, err := v.query("SELECT id FROM fact_index_docsize ORDER BY id")
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
	if _, err := v.conn.exec(v.ctx, "CREATE VIRTUAL TABLE IF NOT EXISTS temp.fact_terms USING fts5vocab(main, fact_index, instance)"); err != nil {
		return nil, err
	}
	rows, err = v.query("SELECT doc, col, term FROM temp.fact_terms")
	_, err = collect(rows, err, func(r scanner) (_ struct{}, err error) {
		var seq int64
		var column, term string
		if err := r.Scan(&seq, &column, &term); err != nil {
			return struct{}{}, err
		}
		f := have[seq]
		f.add(column, term)
		have[seq] = f
		return struct{}{}, nil
	})
	return have, err
}

func (v *View) examineVectors(r *record.DoctorReport) error {
	bad, bits, n, err := vectorFaults(v)
	if err != nil {
		return err
	}
	r.Vectors = n
	found(r, record.FindingVectors, int64(len(bad)), "vectors of another size or of another text than their facts'")
	found(r, record.FindingVectorBits, int64(len(bits)), "vectors whose sign bits are missing or not theirs")
	return nil
}

// vectorFaults returns the rows whose vector is none, and the sign bits of
// those whose stored ones are not theirs.
func vectorFaults(q queryer) (bad []int64, bits map[int64][]byte, n int64, err error) {
	bits = map[int64][]byte{}
	rows, err := q.query(`SELECT e.seq, e.text_hash, e.vector, coalesce(b.bits, x''), f.content
		FROM embeddings e JOIN facts f ON f.seq = e.seq LEFT JOIN embedding_bits b ON b.seq = e.seq ORDER BY e.seq`)
	_, err = collect(rows, err, func(r scanner) (_ struct{}, err error) {
		var seq int64
		var hash, vector, stored []byte
		var content string
		if err := r.Scan(&seq, &hash, &vector, &stored, &content); err != nil {
			return struct{}{}, err
		}
		n++
		sum := sha256.Sum256([]byte(content))
		decoded := decodeVector(vector)
		if string(hash) != string(sum[:16]) || !validVector(decoded) {
			bad = append(bad, seq)
		} else if own := signBits(decoded); string(own) != string(stored) {
			bits[seq] = own
		}
		return struct{}{}, nil
	})
	return bad, bits, n, err
}

// decodeVector is the reverse of encodeVector; nil for what is not one.
func decodeVector(raw []byte) []float32 {
	if len(raw)%4 != 0 {
		return nil
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// repair makes again what the findings name.
func (t *tx) repair(findings []record.Finding) error {
	var index, vectors bool
	for _, f := range findings {
		switch f.What {
		case record.FindingIndexRows, record.FindingFrequencies, record.FindingTotals:
			index = true
		case record.FindingVectors, record.FindingVectorBits:
			vectors = true
		}
	}
	if index {
		if err := t.rebuildIndex(); err != nil {
			return err
		}
	}
	if vectors {
		return t.repairVectors()
	}
	return nil
}

// rebuildIndex writes the whole index anew, except for what the open
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
	var batch pendingIndex
	flush := func() error {
		err := batch.flush(t)
		batch = pendingIndex{}
		return err
	}
	err := eachIndexed(t, func(seq int64, x indexedText) error {
		if waiting[seq] {
			return nil
		}
		batch.add(seq, x)
		if len(batch.docs) < rebuildBatch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
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
	for seq, own := range bits {
		if err := t.exec("INSERT INTO embedding_bits (seq, bits) VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET bits = excluded.bits", seq, own); err != nil {
			return err
		}
	}
	return nil
}

// forget has the index in memory read from the file again.
func (x *vectorIndex) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.loaded, x.seqs, x.domain, x.bits = false, nil, nil, nil
}
