// SPDX-License-Identifier: Apache-2.0

// Command hello is an image's program in tests.
package main

func main() {
	println("hello")
}
