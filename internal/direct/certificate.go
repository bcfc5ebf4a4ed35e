// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// ownLasts is how long a certificate is valid that the process makes for itself: longer than the process lives.
const ownLasts = 10 * 365 * 24 * time.Hour

// certificate is what the front shows to its clients.
type certificate struct {
	get func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// watch looks for changes until ctx ends; with an error it may be tried again. Nil: there are none.
	watch func(ctx context.Context) error
}

// certificate reads the certificate, or makes one.
func (f *Front) certificate() (certificate, error) {
	if f.CertDir == "" {
		own, err := selfSigned(f.Clock.Now())
		if err != nil {
			return certificate{}, fmt.Errorf("making a certificate for direct access: %w", err)
		}
		sum := sha256.Sum256(own.Certificate[0])
		f.Log.Info("direct access has no certificate of its own and uses one made just now; clients cannot check it but by its fingerprint",
			"sha256", hex.EncodeToString(sum[:]))
		return certificate{get: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }}, nil
	}
	w, err := certwatcher.New(filepath.Join(f.CertDir, "tls.crt"), filepath.Join(f.CertDir, "tls.key"))
	if err != nil {
		return certificate{}, fmt.Errorf("reading the certificate for direct access: %w", err)
	}
	watch := func(ctx context.Context) error {
		err := w.Start(ctx)
		if err != nil && ctx.Err() == nil {
			err = errors.Join(err, w.ReadCertificate()) // nobody tells of a new one
		}
		return err
	}
	return certificate{get: w.GetCertificate, watch: watch}, nil
}

// selfSigned makes a certificate that is valid from now on.
func selfSigned(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "reprise direct access"},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.Add(ownLasts),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
