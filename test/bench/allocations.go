// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"reprise.dev/reprise/internal/controlplane"
)

// costInMemory is what admitting one run costs without any API server: a Go benchmark beside the code, BenchmarkAdmission.
func costInMemory(ctx context.Context, _ *Bench) (Sample, error) {
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	test := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkAdmission$", "-benchmem", "-benchtime", "20000x", "./internal/admission")
	test.Dir = root
	out, err := test.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("the benchmark of admission: %w: %s", err, out)
	}
	return benchmarked(string(out))
}

// processors is what Go appends to the name of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

// benchmarked reads what a Go benchmark with sub-benchmarks prints: each value by the name of its sub-benchmark and its unit.
func benchmarked(output string) (Sample, error) {
	sample := Sample{}
	lines := bufio.NewScanner(strings.NewReader(output))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		_, name, _ := strings.Cut(processors.ReplaceAllString(words[0], ""), "/")
		for i := 2; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
			}
			sample[name+" "+words[i+1]] = value
		}
	}
	if len(sample) == 0 {
		return nil, fmt.Errorf("there is no benchmark in %q", output)
	}
	return sample, nil
}
