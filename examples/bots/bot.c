/* A bot in C: plays the first legal move. Compile: cc -o bot bot.c */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

int main(void) {
    char *line = NULL, *legal;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        if (strstr(line, "\"type\":\"hello\""))
            puts("{\"type\":\"ready\",\"name\":\"first move\"}");
        else if (strstr(line, "\"type\":\"quit\""))
            break;
        else if ((legal = strstr(line, "\"legal\":[\"")))
            printf("{\"type\":\"move\",\"move\":\"%.*s\"}\n", (int)strcspn(legal + 10, "\""), legal + 10);
        fflush(stdout);
    }
    return 0;
}
