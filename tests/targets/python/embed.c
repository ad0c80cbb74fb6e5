/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is not called python and has CPython inside: embed SCRIPT. */
#include <Python.h>

__attribute__((noinline)) static int run_script(const char *path)
{
	FILE *script = fopen(path, "r");

	if (!script) {
		perror(path);
		return 1;
	}
	int status = PyRun_SimpleFile(script, path);
	fclose(script);
	return status ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: embed SCRIPT\n");
		return 2;
	}
	Py_Initialize();
	int status = run_script(argv[1]);
	Py_Finalize();
	return status;
}
