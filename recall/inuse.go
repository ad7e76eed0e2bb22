package recall

import "sync/atomic"

// inUse is the model that is used now, which may become another at any time.
type inUse struct{ model atomic.Pointer[Model] }

func newInUse(m Model) *inUse {
	u := &inUse{}
	u.set(m)
	return u
}

// get returns nil when there is none.
func (u *inUse) get() Model {
	if m := u.model.Load(); m != nil {
		return *m
	}
	return nil
}

func (u *inUse) set(m Model) { u.model.Store(&m) }
