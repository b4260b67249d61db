/* A child with a C runtime: reads a line from descriptor 3 and writes it to 4
   with what each standard descriptor is, then exits with its first argument. */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    char in[256], out[512];
    int n = _read(3, in, sizeof in - 1);
    if (n < 0) {
        perror("read 3");
        return 70;
    }
    in[n] = 0;
    snprintf(out, sizeof out, "%s0:%d 1:%d 2:%d 5:%d", in,
             _get_osfhandle(0) != -1, _get_osfhandle(1) != -1, _get_osfhandle(2) != -1, _get_osfhandle(5) != -1);
    if (_write(4, out, strlen(out)) < 0) {
        perror("write 4");
        return 71;
    }
    printf("stray by printf\n");
    return argc > 1 ? (int)strtoul(argv[1], 0, 0) : 0;
}
