/* Ends what counted.h began. */
#undef malloc
#undef calloc
#undef realloc
#undef aligned_alloc
