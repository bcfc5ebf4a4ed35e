// SPDX-License-Identifier: Apache-2.0

// Package audit judges from an API server's audit log whether an account has the rights that it uses, no more and no fewer.
// It looks at files alone and asks nobody.
package audit
