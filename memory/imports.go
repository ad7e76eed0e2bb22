package memory

import (
	"context"
	"errors"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// maxImportItems bounds the facts of one import page.
const maxImportItems = 1000

// ImportFactsPage takes one page of a bulk import through the same path as
// single proposals, in one transaction. An item that is refused is reported by
// its index in the page and stops nothing else.
func (s *Store) ImportFactsPage(ctx context.Context, req record.ImportFacts) (record.ImportReport, error) {
	if err := checkImport(req); err != nil {
		return record.ImportReport{}, err
	}
	return apply(ctx, s, record.KindImportFacts, req, func(t *tx) (record.ImportReport, error) {
		report := record.ImportReport{Failed: []record.ItemError{}}
		for i, item := range req.Items {
			report.Items++
			item.Caller.Workspace = req.Workspace
			out, err := t.importItem(item)
			var refused *record.Error
			if errors.As(err, &refused) && refused.Code != record.Unavailable && refused.Code != record.StoreCorrupt {
				report.Failed = append(report.Failed, record.ItemError{Index: i, Code: refused.Code, Message: refused.Message, Field: refused.Field})
				continue
			}
			if err != nil {
				return report, err
			}
			switch out.Status {
			case record.StatusReMentioned:
				report.ReMentioned++
			case record.StatusRefined:
				report.Refined++
			case record.StatusSupersededBy:
				report.Superseded++
			default:
				report.Created++
			}
		}
		return report, nil
	})
}

func checkImport(req record.ImportFacts) error {
	if len(req.Items) > maxImportItems {
		return record.Errorf(record.PayloadTooLarge, "items", "a page holds at most %d items", maxImportItems)
	}
	return nil
}

func (t *tx) importItem(item record.ProposeFact) (record.ProposeFactResult, error) {
	if err := item.Check(); err != nil {
		return record.ProposeFactResult{}, err
	}
	p, err := checkProposal(item)
	if err != nil {
		return record.ProposeFactResult{}, err
	}
	return t.propose(p)
}
