// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// nowhere is the platform of what no node may take for an image to run.
var nowhere = v1.Platform{OS: "unknown", Architecture: "unknown"}

// release writes a program's images for all platforms as one OCI image layout, which holds one index under the image's tag:
// an image and its bill of materials for each platform. The bills lie beside it as files too.
func (s settings) release(ctx context.Context, k kind, on []v1.Platform, tag name.Tag) error {
	dir, err := os.MkdirTemp("", "reprise-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var entries []mutate.IndexAddendum
	for _, platform := range on {
		program, err := s.build(ctx, k.pkg, platform, dir)
		if err != nil {
			return err
		}
		pair, err := s.pair(k, program, platform)
		if err != nil {
			return err
		}
		entries = append(entries, pair...)
	}
	index, ok := mutate.Annotations(mutate.AppendManifests(empty.Index, entries...), s.labels(k)).(v1.ImageIndex)
	if !ok {
		return errors.New("no index came of an index")
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	place := filepath.Join(s.out, path.Base(k.path())+"-oci")
	if err := writeLayout(place, index, tag.TagStr()); err != nil {
		return err
	}
	fmt.Printf("%s %s@%s\n", place, tag, digest)
	return nil
}

// pair returns the image of a program and its bill of materials, for an index.
func (s settings) pair(k kind, program string, platform v1.Platform) ([]mutate.IndexAddendum, error) {
	img, err := s.image(k, program, platform)
	if err != nil {
		return nil, err
	}
	bill, err := s.writeBill(k, program, platform)
	if err != nil {
		return nil, err
	}
	artefact, err := s.referrer(bill, img)
	if err != nil {
		return nil, err
	}
	return []mutate.IndexAddendum{
		{Add: img, Descriptor: v1.Descriptor{Platform: &platform}},
		{Add: artefact, Descriptor: v1.Descriptor{Platform: &nowhere}},
	}, nil
}

// writeLayout replaces the layout as a whole, so that it holds nothing of an earlier build.
func writeLayout(dir string, index v1.ImageIndex, tag string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return written.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
}
