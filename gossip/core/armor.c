#include "gossip/core/armor.h"

#include <ctype.h>
#include <string.h>

#include "base/assert.h"

enum {
    FIELD = 32,
    ORDER = FIELD - 1,
    WORD_CHARS_MAX = DP_ARMOR_DATA_CHARS + DP_ARMOR_CHECK_CHARS,
    BITS_PER_CHAR = 5,
};

_Static_assert(WORD_CHARS_MAX <= ORDER, "each place of a word has its own power of the generator");

static const char prefix[] = "DPN1-";
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* Powers of x in GF(2)[x] / (x^5 + x^2 + 1), and their logarithms. */
static const uint8_t power[ORDER] = {1,  2,  4, 8, 16, 5,  10, 20, 13, 26, 17, 7,  14, 28, 29, 31,
                                     27, 19, 3, 6, 12, 24, 21, 15, 30, 25, 23, 11, 22, 9,  18};
static const uint8_t logarithm[FIELD] = {0,  0,  1,  18, 2,  5,  19, 11, 3,  29, 6,
                                         27, 20, 8,  12, 23, 4,  10, 30, 17, 7,  22,
                                         28, 26, 21, 25, 9,  16, 13, 14, 24, 15};

static uint8_t multiply(uint8_t a, uint8_t b)
{
    return a == 0 || b == 0 ? 0 : power[(logarithm[a] + logarithm[b]) % ORDER];
}

static uint8_t divide(uint8_t a, uint8_t b)
{
    dp_assert(b != 0);
    return a == 0 ? 0 : power[(logarithm[a] + ORDER - logarithm[b]) % ORDER];
}

/* A word c is whole when both sums are 0: of c_i, and of c_i x^i. */
struct syndrome {
    uint8_t plain;
    uint8_t weighted;
};

static struct syndrome syndrome_of(const uint8_t *word, size_t count)
{
    struct syndrome sums = {0, 0};

    dp_assert(count <= WORD_CHARS_MAX);
    for (size_t i = 0; i < count; i++) {
        sums.plain ^= word[i];
        sums.weighted ^= multiply(word[i], power[i]);
    }
    return sums;
}

/* Fill the last two characters of a word of count: solve u + v = plain, u x^(count-2) + v
 * x^(count-1) = weighted. */
static void add_checks(uint8_t *word, size_t count)
{
    const struct syndrome sums = syndrome_of(word, count - DP_ARMOR_CHECK_CHARS);
    const uint8_t p = power[count - 2];
    const uint8_t q = power[count - 1];
    const uint8_t v = divide(sums.weighted ^ multiply(sums.plain, p), p ^ q);

    word[count - 2] = sums.plain ^ v;
    word[count - 1] = v;
    dp_assert(syndrome_of(word, count).plain == 0 && syndrome_of(word, count).weighted == 0);
}

dp_status dp_armor_write(dp_view bytes, char text[DP_ARMOR_TEXT_MAX + 1])
{
    const size_t n_data = (bytes.size * 8 + BITS_PER_CHAR - 1) / BITS_PER_CHAR;
    const size_t n_words = (n_data + DP_ARMOR_DATA_CHARS - 1) / DP_ARMOR_DATA_CHARS;
    size_t size = strlen(prefix);

    if (bytes.size > DP_ARMOR_TEXT_MAX ||
        size + n_data + n_words * DP_ARMOR_CHECK_CHARS > DP_ARMOR_TEXT_MAX) {
        return DP_TOOBIG;
    }
    memcpy(text, prefix, size);
    for (size_t start = 0; start < n_data; start += DP_ARMOR_DATA_CHARS) {
        uint8_t word[WORD_CHARS_MAX] = {0};
        const size_t left = n_data - start;
        const size_t count = left < DP_ARMOR_DATA_CHARS ? left : DP_ARMOR_DATA_CHARS;
        for (size_t i = 0; i < count; i++) {
            const size_t bit = (start + i) * BITS_PER_CHAR;
            const unsigned high = bytes.data[bit / 8];
            const unsigned low = bit / 8 + 1 < bytes.size ? bytes.data[bit / 8 + 1] : 0;
            word[i] = (uint8_t)((high << 8 | low) >> (11 - bit % 8) & 31U);
        }
        add_checks(word, count + DP_ARMOR_CHECK_CHARS);
        for (size_t i = 0; i < count + DP_ARMOR_CHECK_CHARS; i++) {
            text[size++] = alphabet[word[i]];
        }
    }
    text[size] = '\0';
    return DP_OK;
}

/* The characters that count, and where each stood in the text as given. */
struct symbols {
    uint8_t values[DP_ARMOR_TEXT_MAX];
    uint16_t places[DP_ARMOR_TEXT_MAX];
    size_t count;
};

static dp_status damaged(dp_why *why, size_t *position, size_t place, size_t total)
{
    if (position != NULL) {
        *position = place;
    }
    return dp_why_set(why, DP_BADMSG,
                      "The token is damaged at character %zu of %zu, or next to it; copy it again "
                      "from where it was "
                      "made.",
                      place, total);
}

static bool is_skipped(uint8_t character)
{
    return isspace(character) != 0 || character == '-';
}

/* The prefix, in any case. *at moves behind it. */
static dp_status read_prefix(dp_view text, size_t *at, dp_why *why)
{
    const size_t letters = strlen(prefix) - 2; /* without digit and dash */
    size_t i = 0;

    while (i < text.size && is_skipped(text.data[i])) {
        i++;
    }
    for (size_t k = 0; k < letters; k++, i++) {
        if (i >= text.size || toupper(text.data[i]) != prefix[k]) {
            return dp_why_set(why, DP_BADMSG, "This is not an invite token: tokens begin with %s.",
                              prefix);
        }
    }
    if (i >= text.size || isdigit(text.data[i]) == 0) {
        return dp_why_set(why, DP_BADMSG, "This is not an invite token: tokens begin with %s.",
                          prefix);
    }
    if (text.data[i] != (uint8_t)prefix[letters]) {
        return dp_why_set(why, DP_VERSION,
                          "The token is of version %c and this program reads version 1; upgrade "
                          "the older of the two.",
                          text.data[i]);
    }
    *at = i + 1;
    return DP_OK;
}

static dp_status collect(dp_view text, size_t at, struct symbols *symbols, size_t *position,
                         dp_why *why)
{
    symbols->count = 0;
    for (size_t i = at; i < text.size; i++) {
        if (is_skipped(text.data[i])) {
            continue;
        }
        const int upper = toupper(text.data[i]);
        const char *found = upper == '\0' ? NULL : strchr(alphabet, upper);
        if (found == NULL) {
            if (position != NULL) {
                *position = i + 1;
            }
            return dp_why_set(why, DP_BADMSG,
                              "Character %zu of %zu cannot stand in a token, which has only "
                              "letters and 2 to 7 (no 0, "
                              "1, 8, 9); copy it again.",
                              i + 1, text.size);
        }
        symbols->values[symbols->count] = (uint8_t)(found - alphabet);
        symbols->places[symbols->count] = (uint16_t)(i + 1);
        symbols->count++;
    }
    return DP_OK;
}

/* Check every word; the first that is not whole names the damage. */
static dp_status check_words(const struct symbols *symbols, size_t total, size_t *position,
                             dp_why *why)
{
    for (size_t start = 0; start < symbols->count; start += WORD_CHARS_MAX) {
        const size_t left = symbols->count - start;
        const size_t count = left < WORD_CHARS_MAX ? left : WORD_CHARS_MAX;
        if (count <= DP_ARMOR_CHECK_CHARS) {
            return damaged(why, position, symbols->places[symbols->count - 1], total);
        }
        const struct syndrome sums = syndrome_of(&symbols->values[start], count);
        if (sums.plain == 0 && sums.weighted == 0) {
            continue;
        }
        /* One wrong character leaves its error e and e x^i; anything else is at least two. */
        size_t index = count;
        if (sums.plain != 0 && sums.weighted != 0) {
            index = logarithm[divide(sums.weighted, sums.plain)];
        }
        if (index < count) {
            return damaged(why, position, symbols->places[start + index], total);
        }
        if (position != NULL) {
            *position = symbols->places[start];
        }
        return dp_why_set(why, DP_BADMSG,
                          "The token is damaged between characters %u and %u of %zu; copy it again "
                          "from where it was "
                          "made.",
                          (unsigned)symbols->places[start],
                          (unsigned)symbols->places[start + count - 1], total);
    }
    return DP_OK;
}

/* Five bits of every data character, the first bit first. Bits left over must be zero: one text for
 * one run of bytes. */
static dp_status unpack(const struct symbols *symbols, dp_buf *out)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;

    for (size_t i = 0; i < symbols->count; i++) {
        const size_t start = i - i % WORD_CHARS_MAX;
        const size_t left = symbols->count - start;
        const size_t count = left < WORD_CHARS_MAX ? left : WORD_CHARS_MAX;
        if (i - start >= count - DP_ARMOR_CHECK_CHARS) {
            continue;
        }
        bits = bits << BITS_PER_CHAR | symbols->values[i];
        n_bits += BITS_PER_CHAR;
        if (n_bits >= 8) {
            const uint8_t byte = (uint8_t)(bits >> (n_bits - 8));
            n_bits -= 8;
            bits &= (1U << n_bits) - 1;
            DP_TRY(dp_buf_append(out, dp_view_of(&byte, 1)));
        }
    }
    return bits == 0 && n_bits < BITS_PER_CHAR ? DP_OK : DP_BADMSG;
}

dp_status dp_armor_read(dp_view text, dp_buf *out, size_t *position, dp_why *why)
{
    struct symbols symbols;
    size_t at = 0;

    while (text.size > 0 && isspace(text.data[text.size - 1]) != 0) {
        text.size--;
    }
    if (text.size > DP_ARMOR_TEXT_MAX) {
        return dp_why_set(why, DP_TOOBIG, "A token has at most %d characters; this text has %zu.",
                          DP_ARMOR_TEXT_MAX, text.size);
    }
    if (position != NULL) {
        *position = 0;
    }
    DP_TRY(read_prefix(text, &at, why));
    DP_TRY(collect(text, at, &symbols, position, why));
    DP_TRY(check_words(&symbols, text.size, position, why));
    const dp_status status = unpack(&symbols, out);
    return status == DP_BADMSG ? damaged(why, position, text.size, text.size) : status;
}
