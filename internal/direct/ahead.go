// SPDX-License-Identifier: Apache-2.0

package direct

const (
	// pieceSize is how much of a body is taken into memory at once.
	pieceSize = 16 << 10
	// maxPieces is how many pieces of one body are in memory at once.
	maxPieces = 16
	// maxAhead is how much of a body is read before anybody wants it.
	maxAhead = maxPieces * pieceSize
	// maxBuffered is how much memory all bodies share.
	maxBuffered = 64 << 20
)

// budget is the memory that all bodies share: one send for each piece. The first piece of a body is its own, so that it moves on
// whatever others keep.
type budget chan struct{}

func newBudget(bytes int) budget { return make(budget, bytes/pieceSize) }

// ahead holds, in pieces, what was read of a body and not taken yet. Whoever uses it holds the lock of the body.
type ahead struct {
	budget budget
	// pieces are as long as they are filled. All but the last are full.
	pieces [][]byte
	// off is how much of the first piece was taken.
	off int
	// borrowed is how many pieces are of the budget: all but one.
	borrowed int
}

// space returns room for more, nil: there is none. It is nobody else's until it is filled.
func (a *ahead) space() []byte {
	n := len(a.pieces)
	switch {
	case n > 0 && len(a.pieces[n-1]) < pieceSize:
	case n == 0:
		a.grow()
	case a.full():
		return nil
	default:
		select {
		case a.budget <- struct{}{}:
			a.lent()
		default:
			return nil
		}
	}
	last := a.pieces[len(a.pieces)-1]
	return last[len(last):pieceSize]
}

func (a *ahead) grow() { a.pieces = append(a.pieces, make([]byte, 0, pieceSize)) }

// lent takes a piece of the budget, which was had for it.
func (a *ahead) lent() {
	a.borrowed++
	a.grow()
	a.settle()
}

// settle gives back to the budget what is not needed any more.
func (a *ahead) settle() {
	for ; a.borrowed > max(0, len(a.pieces)-1); a.borrowed-- {
		<-a.budget
	}
}

// full says whether the body may not have more pieces.
func (a *ahead) full() bool { return len(a.pieces) >= maxPieces }

// filled says that the next n bytes of the space hold what was read.
func (a *ahead) filled(n int) {
	last := len(a.pieces) - 1
	a.pieces[last] = a.pieces[last][:len(a.pieces[last])+n]
}

func (a *ahead) empty() bool {
	return len(a.pieces) == 0 || a.off == len(a.pieces[0])
}

// take takes some of what there is.
func (a *ahead) take(p []byte) int {
	if a.empty() {
		return 0
	}
	n := copy(p, a.pieces[0][a.off:])
	if a.off += n; a.off == pieceSize {
		a.pieces, a.off = a.pieces[1:], 0
		a.settle()
	}
	return n
}

// drop forgets everything.
func (a *ahead) drop() {
	a.pieces, a.off = nil, 0
	a.settle()
}
