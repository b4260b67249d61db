/* A noisy server that knows nothing of wireguardrun; noisy_test.go says what
   it does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put(const char *text) {
	if (write(1, text, strlen(text)) < 0) exit(1);
}

static void *chatter(void *arg) {
	for (int i = 0; i < 9; i++) put("<threads>\n");
	return arg;
}

static void serve(const char *request) {
	int id;
	char kind[32], answer[128];
	if (sscanf(request, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%31[a-z_]", &id, kind) != 2) exit(1);
	snprintf(answer, sizeof answer, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":\"%s\"}", id, kind);
#define IS(name) (strcmp(kind, name) == 0)
	if (IS("log_messages")) {
		printf("recv %s\nsend %s\n", request, answer);
	} else if (IS("log_sent")) {
		printf("%s\nsent %s\n", answer, answer);
		return;
	} else if (IS("log_object")) {
		printf("{\"level\":\"info\",\"message\":%s}\n", answer);
	} else if (IS("before")) {
		puts("<before>");
	} else if (IS("same_line")) {
		printf("<same_line>");
	} else if (IS("after")) {
		printf("%s\n<after>\n", answer);
		return;
	} else if (IS("after_same_line")) {
		printf("%s <after_same_line>\n", answer);
		return;
	} else if (IS("native")) {
		put("<native>\n");
	} else if (IS("native_unfinished")) {
		put("<native_unfinished>");
	} else if (IS("child")) {
		if (system("echo '<child>'")) exit(1);
	} else if (IS("child_unfinished")) {
		if (system("printf '<child_unfinished>'")) exit(1);
	} else if (IS("threads")) {
		pthread_t threads[3];
		for (int i = 0; i < 3; i++)
			if (pthread_create(&threads[i], NULL, chatter, NULL)) exit(1);
		for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
	} else if (IS("progress")) {
		for (const char **n = (const char *[]){"10", "50", "100", NULL}; *n; n++) {
			printf("\r<progress> %s%%", *n);
			fflush(stdout);
		}
	} else if (IS("escape")) {
		printf("\033[1m<escape>\033[0m");
	} else if (IS("brace")) {
		puts("{ <brace>");
	} else if (IS("own")) {
		puts("{\"jsonrpc\":\"2.0\",\"method\":\"own\"}");
	}
	puts(answer);
}

int main(void) {
	char line[1024];
	puts("<start>");
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		serve(line);
		fflush(stdout);
	}
	printf("<exit>"); /* written when the C library flushes at exit */
	return 0;
}
