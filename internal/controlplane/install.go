// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const temporaryPrefix = ".reprise-tmp-"

// inTemporary runs make with a new directory inside the store, on the same file system as the final place, and removes
// it afterwards. Left-overs of processes that were killed go too: whoever is here holds the lock.
func (f *finder) inTemporary(produce func(dir string) error) error {
	left, err := filepath.Glob(filepath.Join(f.store, temporaryPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		_ = os.RemoveAll(dir) // a left-over that stays costs space only
	}
	dir, err := os.MkdirTemp(f.store, temporaryPrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return produce(dir)
}

// install moves finished binaries into place, each in one step, after each has shown that it runs. What it wrote is
// recorded, so that a file which is cut short later is noticed.
func (f *finder) install(ctx context.Context, from, to string, names []string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	records := readManifest(to)
	for _, name := range names {
		path := filepath.Join(from, name)
		version, err := f.probe(ctx, name, path)
		if err != nil {
			return err
		}
		if records[name], err = newRecord(path, version); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	if err := records.write(to); err != nil {
		return fmt.Errorf("what is in %s cannot be recorded: %w", to, err)
	}
	return nil
}
