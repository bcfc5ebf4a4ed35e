// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// validity is how long the certificates of a throw-away control plane hold: longer than anybody keeps one up.
const validity = 365 * 24 * time.Hour

// pair is a certificate and its key, PEM encoded.
type pair struct {
	cert, key []byte
}

// authority is a certificate authority that lives as long as its control plane.
type authority struct {
	pair
	parsed *x509.Certificate
	signer *ecdsa.PrivateKey
}

func newAuthority(now time.Time) (*authority, error) {
	template := newTemplate(now, pkix.Name{CommonName: "reprise local control plane"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	signer, err := newKey()
	if err != nil {
		return nil, err
	}
	issued, err := sign(template, template, signer, signer)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(issued.cert)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &authority{pair: issued, parsed: parsed, signer: signer}, nil
}

// server issues the certificate of something that listens on loopback.
func (a *authority) server(now time.Time) (pair, error) {
	template := newTemplate(now, pkix.Name{CommonName: kubeAPIServer})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.issue(template)
}

// client issues the certificate of a user: Kubernetes reads the name from CN and the groups from O.
func (a *authority) client(now time.Time, user string, groups ...string) (pair, error) {
	template := newTemplate(now, pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	return sign(template, a.parsed, key, a.signer)
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return pair{}, err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: encoded}, nil
}

func newTemplate(now time.Time, subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour), // the clock of whoever checks may be behind
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
