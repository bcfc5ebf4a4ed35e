// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"unsafe"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Every waiting run is in the manager's memory. Go allocates 704 bytes for one of up to 696, since it adds 8 of its own to whatever
// is larger than 512 and has pointers, and 768 for the next.
func TestAJobRunFitsIntoASizeClassOfGosAllocator(t *testing.T) {
	if size := unsafe.Sizeof(batchv1alpha1.JobRun{}); size > 696 {
		t.Errorf("a JobRun takes %d bytes; put small fields of its spec or status beside each other, or see whether it is worth 64 bytes a run", size)
	}
}
