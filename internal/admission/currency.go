// SPDX-License-Identifier: Apache-2.0

package admission

// currency admits only versions that may be the latest: a claim of an older one would fail again.
type currency struct{}

// Check refuses an entry whose claim has met a newer version. What it would use is left for it, since the newer version is
// seen within moments: nobody behind it gets its slot because of an unlucky write.
func (currency) Check(_ *Slots, c *Candidate) Verdict {
	if c.OutOfDate {
		v := refuse(CodeOutOfDate, "it was changed a moment ago; its latest version is yet to be seen")
		v.Reserves = true
		return v
	}
	return Verdict{}
}
