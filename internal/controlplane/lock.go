// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is how often a process that waits for the store's lock asks again.
const lockPoll = 200 * time.Millisecond

// lockStore waits until this process alone may change the store. The kernel drops the lock with the process, so one that
// was killed holds up nobody.
func (f *finder) lockStore(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(f.store, 0o755); err != nil {
		return nil, fmt.Errorf("the store of binaries cannot be made: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(f.store, ".reprise.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("the store of binaries cannot be locked: %w", err)
	}
	if err := f.waitForLock(ctx, file); err != nil {
		return nil, errors.Join(fmt.Errorf("the store of binaries %s cannot be locked: %w", f.store, err), file.Close())
	}
	return func() { _ = file.Close() }, nil // closing the only descriptor unlocks; there is nothing to lose
}

func (f *finder) waitForLock(ctx context.Context, file *os.File) error {
	told := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if !told {
			f.say("another process is preparing the binaries in %s; waiting for it", f.store)
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
