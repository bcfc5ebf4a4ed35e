// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// downloadSite serves one release as the real site does: an index, and an archive with its sum in the index.
func downloadSite(t *testing.T, version string, archive []byte) (index string) {
	t.Helper()
	name := fmt.Sprintf("envtest-v%s-%s-%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "releases:\n  v%s:\n    %s:\n      hash: %x\n      selfLink: %s/archive\n",
			version, name, sha512.Sum512(archive), server.URL)
	})
	mux.HandleFunc("/archive", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	return server.URL + "/index.yaml"
}

func archiveOf(t *testing.T, content map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for name, text := range content {
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// realSources are those of this machine, but for the place that downloads come from.
func realSources(t *testing.T, index string) *sources {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENVTEST_USE_ENV", "true") // what a user may have set must not lead to the user's own files
	t.Setenv("KUBEBUILDER_ASSETS", "/nonexistent")
	return &sources{root: root, say: t.Logf, index: index}
}

func TestTheRealSetupEnvtestDownloads(t *testing.T) {
	content := map[string]string{}
	for _, name := range envtestNames {
		content[name] = whole(name, "1.37.0")
	}
	s := realSources(t, downloadSite(t, "1.37.0", archiveOf(t, content)))
	dir := t.TempDir()
	version, err := s.download(t.Context(), "1.37", dir)
	if err != nil {
		t.Fatal(err)
	}
	if version != "1.37.0" {
		t.Errorf("version %q", version)
	}
	for name, want := range content {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
}

func TestADownloadSiteThatFailsIsAnErrorWithItsReason(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, tc := range map[string]struct{ index, want string }{
		"that is not there":                {closed.URL, "connection refused"},
		"without a release of the minor":   {downloadSite(t, "1.36.0", nil), "unable to find a version"},
		"whose archive is no archive":      {downloadSite(t, "1.37.0", []byte("an apology in HTML")), "exit status"},
		"whose archive lacks the binaries": {downloadSite(t, "1.37.0", archiveOf(t, map[string]string{etcd: "x"})), kubeAPIServer},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := realSources(t, tc.index).download(t.Context(), "1.37", t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not speak of %q", err, tc.want)
			}
		})
	}
}
