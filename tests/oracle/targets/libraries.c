/* SPDX-License-Identifier: Apache-2.0 */
/* Code of the C library and of libraries with hand-written assembly, each called once or twice. */
#include <dlfcn.h>
#include <iconv.h>
#include <math.h>
#include <regex.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

extern char **environ;
static volatile long sink;

static void strings(void)
{
	char a[700], b[700];

	for (size_t size = 1; size < sizeof(a); size = size * 5 / 2 + 1) {
		memset(a, 'x', size);
		a[size] = 0;
		memcpy(b, a, size + 1);
		memmove(b + 1, b, size);
		sink += (long)strlen(a) + memcmp(a, b, size) + strcmp(a, b);
		sink += strchr(a, 'y') != NULL;
		sink += strrchr(a, 'x') - a;
		sink += memchr(a, 0, size + 1) != NULL;
		sink += strstr(a, "xy") != NULL;
		sink += strncasecmp(a, "XXXX", 4);
	}
}

static void text(void)
{
	regex_t expression;
	char in[] = "d\xe9j\xe0 vu", out[64], *from = in, *to = out;
	size_t in_left = sizeof(in), out_left = sizeof(out);

	if (!regcomp(&expression, "^([a-z]+)[0-9]*$", REG_EXTENDED)) {
		sink += regexec(&expression, "hello42", 0, NULL, 0);
		regfree(&expression);
	}
	iconv_t convert = iconv_open("UTF-8", "ISO-8859-1");
	if (convert != (iconv_t)-1) {
		sink += (long)iconv(convert, &from, &in_left, &to, &out_left);
		iconv_close(convert);
	}
	sink += (long)strtod("1.25e3", NULL) + strtol("77", NULL, 8);
	snprintf(out, sizeof(out), "%.3f %20s %#x", exp(1.5) * sin(0.5), "right", 255);
}

static void processes(void)
{
	char *arguments[] = {"/bin/true", NULL};
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	sink += waitpid(pid, NULL, 0);
	pid = fork();
	if (!pid)
		_exit(0);
	sink += waitpid(pid, NULL, 0);
	if (!posix_spawn(&pid, arguments[0], NULL, NULL, arguments, environ))
		sink += waitpid(pid, NULL, 0);
}

/*
 * Blocks of hashes and ciphers in assembly; declared here, for there may be no headers. Weak: the
 * program is also built without libcrypto.
 */
#define WEAK __attribute__((weak))
WEAK void SHA1_Transform(void *state, const unsigned char *block);
WEAK void SHA256_Transform(void *state, const unsigned char *block);
WEAK void SHA512_Transform(void *state, const unsigned char *block);
WEAK void MD5_Transform(void *state, const unsigned char *block);
WEAK int AES_set_encrypt_key(const unsigned char *key, int bits, void *schedule);
WEAK void AES_encrypt(const unsigned char *from, unsigned char *to, const void *schedule);
WEAK void *BN_new(void);
WEAK int BN_set_word(void *number, unsigned long word);
WEAK int BN_mul(void *to, const void *a, const void *b, void *context);
WEAK void *BN_CTX_new(void);

static void crypto(void)
{
	unsigned char data[300] = {1, 2, 3}, state[512] = {0}, schedule[512];

	if (!SHA256_Transform)
		return;
	SHA1_Transform(state, data);
	SHA256_Transform(state, data);
	SHA512_Transform(state, data);
	MD5_Transform(state, data);
	if (!AES_set_encrypt_key(data, 128, schedule))
		AES_encrypt(data, state, schedule);
	void *a = BN_new(), *b = BN_new(), *context = BN_CTX_new();
	if (a && b && context && BN_set_word(a, ~0ul) && BN_set_word(b, 12345))
		for (int i = 0; i < 5; i++)
			sink += BN_mul(a, a, a, context) + BN_mul(b, a, b, context);
}

static void load(void)
{
	void *library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);

	if (library) {
		sink += dlsym(library, "openpty") != NULL;
		dlclose(library);
	}
	sink += dlopen("libnot-there.so", RTLD_NOW) != NULL;
}

int main(void)
{
	struct timespec now;

	strings();
	text();
	processes();
	clock_gettime(CLOCK_MONOTONIC, &now);
	sink += time(NULL) + getpid();
	crypto();
	load();
	return 0;
}
