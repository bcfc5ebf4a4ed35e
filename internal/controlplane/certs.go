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

// Pair is a certificate and its key, PEM encoded.
type Pair struct {
	// Cert is the certificate.
	Cert []byte
	// Key is its private key.
	Key []byte
}

// Authority is a certificate authority that lives as long as its control plane.
type Authority struct {
	Pair
	parsed *x509.Certificate
	signer *ecdsa.PrivateKey
}

// NewAuthority makes an authority.
func NewAuthority(now time.Time) (*Authority, error) {
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
	block, _ := pem.Decode(issued.Cert)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: issued, parsed: parsed, signer: signer}, nil
}

// Server issues the certificate of an API server, which clients know as localhost, 127.0.0.1, the name of Kubernetes' service
// and at the given addresses.
func (a *Authority) Server(now time.Time, addresses ...net.IP) (Pair, error) {
	template := newTemplate(now, pkix.Name{CommonName: kubeAPIServer})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	template.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1)}, addresses...)
	return a.issue(template)
}

// Client issues the certificate of a user: Kubernetes reads the name from CN and the groups from O.
func (a *Authority) Client(now time.Time, user string, groups ...string) (Pair, error) {
	template := newTemplate(now, pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	return sign(template, a.parsed, key, a.signer)
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: encoded}, nil
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

// NewSigningKey returns a key for the tokens of service accounts, PEM encoded.
func NewSigningKey() ([]byte, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	return encodeKey(key)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
