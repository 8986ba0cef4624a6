#!/bin/bash
# tests/soak/processors.sh runs this script in a root of Debian. Builds the
# libraries from the archives of Debian's sources in $T/src, for musl, into
# /musl. musl-gcc has no headers of the kernel; sys/queue.h and uthash are
# headers only.

set -eu
export CC=musl-gcc CFLAGS='-O1 -isystem /musl/include'
export PKG_CONFIG_LIBDIR=/musl/lib/pkgconfig
headers=/usr/include/x86_64-linux-gnu
mkdir -p /musl/include/sys /build
cp "$headers"/sys/{queue,sdt,sdt-config}.h /musl/include/sys
cp /usr/include/ut{hash,list,array}.h /musl/include
ln -s /usr/include/{linux,asm-generic} "$headers/asm" /musl/include

build() { # NAME CONFIGURE-OPTION...
	local name=$1
	shift
	tar -C /build -xf "$T/src/$name"_*.orig.tar.?z
	cd "/build/$name"-*/
	./configure --prefix=/musl "$@"
	make -j"$(nproc)"
	make install
}

build zlib --static
build sqlite3 --disable-shared --disable-tcl --disable-readline
build libevent --disable-shared --disable-openssl --disable-samples \
	--disable-libevent-regress
build libseccomp --disable-shared
build check --disable-shared --enable-subunit=no
# refd-deliver's.
build curl --disable-shared --without-ssl --without-libpsl --without-zlib \
	--without-brotli --without-zstd --without-libidn2 --without-nghttp2 \
	--disable-ldap --disable-docs --disable-manual
