#define _GNU_SOURCE /* dladdr1 */
#include "symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef ElfW(Ehdr) file_header;
typedef ElfW(Shdr) section_header;
typedef ElfW(Sym) symbol;

/* A file of machine code in memory. */
struct image {
  const char *bytes;
  size_t length;
};

static struct image image_map(const char *path) {
  struct image image = {NULL, 0};
  struct stat status;
  const int descriptor = open(path, O_RDONLY);
  if (descriptor < 0)
    return image;
  if (fstat(descriptor, &status) == 0 && status.st_size >= (off_t)sizeof(file_header)) {
    image.length = (size_t)status.st_size;
    image.bytes = mmap(NULL, image.length, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  close(descriptor);
  if (image.bytes == MAP_FAILED || image.length == 0 || memcmp(image.bytes, ELFMAG, SELFMAG) != 0)
    return (struct image){NULL, 0};
  return image;
}

static bool holds(const struct image *image, const section_header *section) {
  return section->sh_offset <= image->length && section->sh_size <= image->length - section->sh_offset;
}

/* The function of a symbol table that contains an address; NULL: none. */
static const symbol *find_in(const struct image *image, const section_header *table, uintptr_t place) {
  const symbol *symbols = (const void *)(image->bytes + table->sh_offset);
  for (size_t i = 0; holds(image, table) && i < table->sh_size / sizeof *symbols; i++)
    if ((symbols[i].st_info & 0xf) == STT_FUNC && place - symbols[i].st_value < symbols[i].st_size)
      return &symbols[i];
  return NULL;
}

/* Writes the function around an address in the file; false: unknown, for example in a stripped file. */
static bool find(const struct image *image, uintptr_t place, char *name, size_t length) {
  const file_header *header = (const void *)image->bytes;
  const section_header *sections = (const void *)(image->bytes + header->e_shoff);
  const size_t room = header->e_shoff < image->length ? image->length - header->e_shoff : 0;
  for (size_t i = 0; i < header->e_shnum && header->e_shnum <= room / sizeof *sections; i++) {
    const symbol *found = sections[i].sh_type == SHT_SYMTAB ? find_in(image, &sections[i], place) : NULL;
    if (found && sections[i].sh_link < header->e_shnum && holds(image, &sections[sections[i].sh_link])) {
      const char *names = image->bytes + sections[sections[i].sh_link].sh_offset;
      snprintf(name, length, "%s+0x%zx", names + found->st_name, (size_t)(place + 1 - found->st_value));
      return true;
    }
  }
  return false;
}

void symbol_name(const void *address, char *name, size_t length) {
  Dl_info info;
  struct link_map *map;
  const void *call =
      (const char *)address - 1; /* from which it returns: the next address may be in another function */
  if (dladdr1(call, &info, (void **)&map, RTLD_DL_LINKMAP) == 0) {
    snprintf(name, length, "%p", address);
    return;
  }
  const char *path = *map->l_name ? map->l_name : "/proc/self/exe";
  const char *file = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
  const uintptr_t place = (uintptr_t)call - map->l_addr;
  char function[96];
  const struct image image = image_map(path);
  if (info.dli_sname)
    snprintf(function, sizeof function, "%s+0x%zx", info.dli_sname,
             (size_t)((const char *)address - (const char *)info.dli_saddr));
  else if (image.bytes == NULL || !find(&image, place, function, sizeof function))
    snprintf(function, sizeof function, "0x%zx", (size_t)place + 1);
  snprintf(name, length, "%s (%s)", function, file);
  if (image.bytes)
    munmap((void *)(uintptr_t)image.bytes, image.length);
}
