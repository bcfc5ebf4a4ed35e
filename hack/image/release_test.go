// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestAReleaseHasAnImageOfEachPlatform(t *testing.T) {
	s := settled(t, "testdata/repository")
	_, index := greeting(t, s)
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	for _, platform := range platforms {
		img := imageFor(t, index, platform)
		config := must(img.ConfigFile())(t)
		if config.OS != platform.OS || config.Architecture != platform.Architecture {
			t.Errorf("%s: the image says it is for %s/%s", platform, config.OS, config.Architecture)
		}
		machine := map[string]byte{"amd64": 62, "arm64": 183}[platform.Architecture] // e_machine of an ELF header
		if binary := files(t, img)[0].content; string(binary[:4]) != "\x7fELF" || binary[18] != machine {
			t.Errorf("%s: the program is for another machine: % x", platform, binary[:20])
		}
	}
	annotations := must(index.IndexManifest())(t).Annotations
	if got := annotations["org.opencontainers.image.revision"]; got != s.revision {
		t.Errorf("the index says it is of revision %q", got)
	}
}

// imageFor returns the one image that a node of a platform chooses.
func imageFor(t *testing.T, index v1.ImageIndex, platform v1.Platform) v1.Image {
	t.Helper()
	var found []v1.Image
	for _, entry := range must(index.IndexManifest())(t).Manifests {
		if entry.Platform == nil || entry.Platform.Satisfies(platform) {
			found = append(found, must(index.Image(entry.Digest))(t))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: %d images to choose from", platform, len(found))
	}
	return found[0]
}

func TestAReleaseBuiltTwiceHasOneDigest(t *testing.T) {
	first, second := settled(t, "testdata/repository"), settled(t, t.TempDir())
	if err := os.CopyFS(second.root, os.DirFS(first.root)); err != nil {
		t.Fatal(err)
	}
	_, one := greeting(t, first)
	_, other := greeting(t, second)
	if a, b := must(one.Digest())(t), must(other.Digest())(t); a != b {
		t.Errorf("%s and %s", a, b)
	}
}

func TestALayoutHoldsNothingOfAnEarlierBuild(t *testing.T) {
	s := settled(t, "testdata/repository")
	_, old := greeting(t, s)
	s.version = "v1.2.4"
	greeting(t, s)
	blob := must(old.Digest())(t).Hex
	if _, err := os.Stat(filepath.Join(s.out, "hello-oci", "blobs", "sha256", blob)); !os.IsNotExist(err) {
		t.Errorf("the index of the earlier build is still there: %v", err)
	}
}

func TestARegistryListsTheBillOfMaterialsOfEachImage(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	s := settled(t, "testdata/repository")
	_, index := greeting(t, s)
	tag := must(name.NewTag(strings.TrimPrefix(server.URL, "http://")+"/team/hello:v1.2.3", name.Insecure))(t)
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	for _, platform := range platforms {
		img := must(remote.Image(tag, remote.WithPlatform(platform)))(t)
		digest := tag.Digest(must(img.Digest())(t).String())
		referrers := must(must(remote.Referrers(digest))(t).IndexManifest())(t).Manifests
		if len(referrers) != 1 || referrers[0].ArtifactType != string(mediaTypeSBOM) {
			t.Fatalf("%s: the registry lists %+v", platform, referrers)
		}
		bill := must(remote.Image(tag.Digest(referrers[0].Digest.String())))(t)
		layers := must(bill.Layers())(t)
		attached := must(compressed(layers[0]))(t)
		beside := must(os.ReadFile(filepath.Join(s.out, "hello-"+platform.Architecture+".cdx.json")))(t)
		if string(attached) != string(beside) {
			t.Errorf("%s: the bill in the registry is not the one beside the image", platform)
		}
	}
}

func TestABillOfMaterialsNamesTheProgramAndTheStandardLibrary(t *testing.T) {
	s := settled(t, "testdata/repository")
	_, index := greeting(t, s)
	bill := billOf(t, filepath.Join(s.out, "hello-arm64.cdx.json"))
	about := bill.Metadata.Component
	if about.Version != s.version || about.Name != "reprise.dev/reprise/hack/image/testdata/repository" {
		t.Errorf("the bill is about %s %s", about.Name, about.Version)
	}
	if want := sum(files(t, imageFor(t, index, platforms[1]))[0].content); (*about.Hashes)[0].Value != want {
		t.Errorf("the bill is about a program with sum %s, and the image has %s", (*about.Hashes)[0].Value, want)
	}
	if !slices.Contains(*about.Properties, cdx.Property{Name: "reprise:build:GOARCH", Value: "arm64"}) {
		t.Errorf("the bill says the program was built so: %+v", *about.Properties)
	}
	if list := *bill.Components; len(list) != 1 || !strings.HasPrefix(list[0].PackageURL, "pkg:golang/std@1.") {
		t.Errorf("a program without dependencies consists of %+v", list)
	}
}

// billOf reads a bill of materials.
func billOf(t *testing.T, path string) *cdx.BOM {
	t.Helper()
	content := must(os.ReadFile(path))(t)
	var raw struct{ BOMFormat, SpecVersion string }
	if err := json.Unmarshal(content, &raw); err != nil || raw.BOMFormat != "CycloneDX" || raw.SpecVersion != "1.6" {
		t.Fatalf("%s is not what it should be: %+v, %v", path, raw, err)
	}
	bill := &cdx.BOM{}
	if err := cdx.NewBOMDecoder(strings.NewReader(string(content)), cdx.BOMFileFormatJSON).Decode(bill); err != nil {
		t.Fatal(err)
	}
	return bill
}
