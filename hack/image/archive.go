// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// writeArchive replaces a file by an image in the form of `docker save`: who reads the file meanwhile sees the old one. The
// library's own writer puts several names into an order that changes from one time to the next.
func writeArchive(file string, img v1.Image, names []string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	var buffer bytes.Buffer
	if err := archive(&buffer, img, names); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := os.WriteFile(file+".new", buffer.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func archive(out io.Writer, img v1.Image, names []string) error {
	refs := map[name.Reference]v1.Image{}
	for _, text := range names {
		tag, err := name.NewTag(text)
		if err != nil {
			return err
		}
		refs[tag] = img
	}
	manifest, err := tarball.ComputeManifest(refs)
	if err != nil {
		return err
	}
	only := manifest[0]
	slices.Sort(only.RepoTags)
	head, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	archive := tar.NewWriter(out)
	if err := add(archive, "manifest.json", head, 0o644); err != nil {
		return err
	}
	if err := add(archive, only.Config, config, 0o644); err != nil {
		return err
	}
	for i, layer := range layers {
		content, err := compressed(layer)
		if err != nil {
			return err
		}
		if err := add(archive, only.Layers[i], content, 0o644); err != nil {
			return err
		}
	}
	return archive.Close()
}

func compressed(layer v1.Layer) ([]byte, error) {
	reader, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(reader)
	return content, errors.Join(err, reader.Close())
}
