// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// local writes one tarball for each image, for one platform. `docker load`, `kind load image-archive` and
// `ctr images import` read them. The manager's has its tag, and the others in the same repository.
func (s settings) local(ctx context.Context, platform v1.Platform, tag name.Tag, others []string) error {
	dir, err := os.MkdirTemp("", "reprise-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	names := []string{tag.String()}
	for _, other := range append(others, s.version, name.DefaultTag) {
		full := strings.TrimSuffix(tag.String(), tag.TagStr()) + other
		if other != "" && !slices.Contains(names, full) {
			names = append(names, full)
		}
	}
	images := []struct {
		kind
		file  string
		names []string
	}{
		// What is built fast comes first: who waits for it can begin.
		{work, "work.tar", []string{"reprise/e2e-work:latest"}},
		{pause, "pause.tar", []string{"reprise/e2e-pause:latest"}},
		{manager, "manager.tar", names},
	}
	for _, i := range images {
		program, err := s.build(ctx, i.pkg, platform, dir)
		if err != nil {
			return err
		}
		img, err := s.image(i.kind, program, platform)
		if err != nil {
			return err
		}
		if i.title == manager.title {
			if _, err := s.writeBill(i.kind, program, platform); err != nil {
				return err
			}
		}
		file := filepath.Join(s.out, i.file)
		if err := writeArchive(file, img, i.names); err != nil {
			return err
		}
		fmt.Println(file, strings.Join(i.names, " "))
	}
	return nil
}
