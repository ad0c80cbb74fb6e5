/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of a folder, as an ordinary test: what fuzzing once found
 * stays found. A folder without files is a failure, or the test could not fail.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of exactly the file's size, so that sanitizers see a read beyond it. */
static int run_file(const char *dir, const char *name)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "re");
	if (!file || fstat(fileno(file), &st)) {
		perror(path);
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		fclose(file);
		return 0;
	}
	uint8_t *data = malloc(st.st_size ? (size_t)st.st_size : 1);
	size_t size = data ? fread(data, 1, (size_t)st.st_size, file) : 0;
	fclose(file);
	if (!data || size != (size_t)st.st_size) {
		fprintf(stderr, "%s: could not be read\n", path);
		free(data);
		return -1;
	}
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	int files = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	DIR *dir = opendir(argv[1]);
	if (!dir) {
		perror(argv[1]);
		return 1;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		int ran = run_file(argv[1], entry->d_name);
		if (ran < 0)
			return 1;
		files += ran;
	}
	closedir(dir);
	printf("%d inputs\n", files);
	return files ? 0 : 1;
}
