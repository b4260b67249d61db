/* A server in C: answers each line, a JSON-RPC request, and prints what is no
   message before and after. What the first argument says decides where: "fds"
   on the descriptors that wireguardrun hands down, "stdio" on standard input
   and output, in text mode, so that each line ends with CR LF. */
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *handed(const char *name, const char *mode) {
	const char *number = getenv(name);
	FILE *f = number ? _fdopen(atoi(number), mode) : NULL;
	if (!f) {
		perror(name);
		exit(70);
	}
	return f;
}

int main(int argc, char **argv) {
	char line[1 << 16];
	FILE *in = stdin, *out = stdout;
	int id;
	if (argc < 3) return 71;
	if (strcmp(argv[1], "fds") == 0) {
		in = handed("WIREGUARDRUN_IN", "rb");
		out = handed("WIREGUARDRUN_OUT", "wb");
	}
	while (fgets(line, sizeof line, in)) {
		if (sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%d,", &id) != 1) return 72;
		printf("<before %d>\n", id);
		fflush(stdout);
		fprintf(out, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"bytes\":%d}}\n", id, (int)strlen(line));
		fflush(out);
		printf("<after %d>\n", id);
		fflush(stdout);
	}
	printf("<exit>\n"); /* written when the C library flushes at exit */
	return (int)strtoul(argv[2], NULL, 0);
}
