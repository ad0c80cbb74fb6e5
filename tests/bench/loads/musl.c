/* SPDX-License-Identifier: Apache-2.0 */
/* A static program with another C library: sorts, prints and hashes until it is stopped. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 50000, WORD_SIZE = 24 };

static char words[WORDS][WORD_SIZE];

static int compare(const void *left, const void *right)
{
	return strcmp(left, right);
}

static void fill(uint32_t seed)
{
	for (int i = 0; i < WORDS; i++) {
		seed = seed * 1664525 + 1013904223;
		snprintf(words[i], WORD_SIZE, "%08x-%d-%.3f", seed, i, seed / 7.0);
	}
}

static uint64_t hash_all(void)
{
	uint64_t hash = 14695981039346656037u;

	for (int i = 0; i < WORDS; i++) {
		char *copy = strdup(words[i]), *rest;
		for (char *at = strtok_r(copy, "-", &rest); at; at = strtok_r(NULL, "-", &rest))
			hash = (hash ^ strtoul(at, NULL, 16) ^ strlen(at)) * 1099511628211u;
		free(copy);
	}
	return hash;
}

int main(void)
{
	uint64_t sum = 0;

	for (uint32_t round = 0; round < UINT32_MAX; round++) {
		fill(round);
		qsort(words, WORDS, WORD_SIZE, compare);
		sum += hash_all();
	}
	return sum == 1;
}
