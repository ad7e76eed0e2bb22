package conflict

// Compare tells how the newer statement relates to the older one.
func Compare(old, new *Parsed) Verdict {
	if old.key == new.key {
		return Verdict{Duplicate, "same-text", "the statements have the same words"}
	}
	return Verdict{Compatible, "none", "no rule sees a conflict"}
}
