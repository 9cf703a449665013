/* A library that is no plugin. */
int dp_nothing_to_query(void);

__attribute__((visibility("default"))) int dp_nothing_to_query(void)
{
    return 0;
}
