// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"unsafe"
)

func TestAnItemFitsIntoASizeClassOfGosAllocator(t *testing.T) {
	if size := unsafe.Sizeof(item{}); size > 160 {
		t.Errorf("an item takes %d bytes, and there is one for each run that waits", size)
	}
}
