// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// mediaTypeSBOM is that of a bill of materials of CycloneDX, in JSON.
const mediaTypeSBOM types.MediaType = "application/vnd.cyclonedx+json"

// writeBill writes the bill of materials of a program beside its image, and returns it.
func (s settings) writeBill(k kind, program string, platform v1.Platform) ([]byte, error) {
	bill, err := s.sbom(k, program)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(s.out, path.Base(k.path())+"-"+platform.Architecture+".cdx.json")
	return bill, os.WriteFile(file, bill, 0o644)
}

// sbom returns the bill of materials of a program: the modules that the Go toolchain says it linked, and the standard
// library. There is nothing else in an image.
func (s settings) sbom(k kind, program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: s.created.Format(time.RFC3339),
		Component: &cdx.Component{
			Type: cdx.ComponentTypeApplication, BOMRef: purl(info.Main.Path, s.version), PackageURL: purl(info.Main.Path, s.version),
			Name: info.Main.Path, Version: s.version, Description: k.title,
			Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
			Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
			Properties: properties(info.Settings),
		},
	}
	linked := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		linked = append(linked, library(module.Path, module.Version))
	}
	bom.Components = &linked
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true)
	// Most scanners read this version; nothing here needs a later one.
	if err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("bill of materials of %s: %w", k.path(), err)
	}
	return out.Bytes(), nil
}

func library(module, version string) cdx.Component {
	ref := purl(module, version)
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: ref, PackageURL: ref, Name: module, Version: version}
}

// purl names a Go module as scanners know it.
func purl(module, version string) string {
	return "pkg:golang/" + strings.ToLower(module) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// properties returns how the program was built.
func properties(all []debug.BuildSetting) *[]cdx.Property {
	list := []cdx.Property{}
	for _, setting := range all {
		list = append(list, cdx.Property{Name: "reprise:build:" + setting.Key, Value: setting.Value})
	}
	return &list
}

// referrer returns a bill of materials as an artefact that refers to its image: a registry that is given both lists it
// among the image's referrers.
func (s settings) referrer(bill []byte, of v1.Image) (v1.Image, error) {
	subject, err := partial.Descriptor(of)
	if err != nil {
		return nil, err
	}
	subject.Platform = nil // says nothing to a registry, and is no part of what is referred to
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mediaTypeSBOM)
	artefact, err := mutate.Append(base, mutate.Addendum{
		Layer:       static.NewLayer(bill, mediaTypeSBOM),
		MediaType:   mediaTypeSBOM,
		Annotations: map[string]string{"org.opencontainers.image.title": "sbom.cdx.json"},
	})
	if err != nil {
		return nil, err
	}
	created := map[string]string{"org.opencontainers.image.created": s.created.Format(time.RFC3339)}
	referring, ok := mutate.Subject(mutate.Annotations(artefact, created), *subject).(v1.Image)
	if !ok {
		return nil, errors.New("no image came of an image")
	}
	return referring, nil
}
