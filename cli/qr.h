/* A text as a QR code of half blocks for the terminal. */
#ifndef DP_CLI_QR_H
#define DP_CLI_QR_H

/* Prints nothing if the text does not fit a code, or the terminal shows no block characters. */
void dp_qr_print(const char *text);

#endif
