# A stand-in for postgres:18: Debian's packages behind an entry point that knows the same variables and folders.
FROM archive-fleet-stand-in/debian
ENV PATH=/usr/lib/postgresql/18/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    PGDATA=/var/lib/postgresql/18/docker
# Debian 13 has version 17; version 18 comes from its successor. A mirror may be days behind; signatures are checked.
RUN sed "s/trixie/forky/" /etc/apt/sources.list > /etc/apt/sources.list.d/forky.list \
 && printf 'Package: *\nPin: release n=forky\nPin-Priority: 100\n' > /etc/apt/preferences.d/forky \
 && apt-get -o Acquire::Check-Valid-Until=false update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -t forky postgresql-18 \
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/18 \
 && echo "listen_addresses = '*'" >> /usr/share/postgresql/18/postgresql.conf.sample
COPY postgres-entrypoint.sh /usr/local/bin/entrypoint
VOLUME /var/lib/postgresql
EXPOSE 5432
# Fast shutdown, as in the official image: nobody is waited for.
STOPSIGNAL SIGINT
ENTRYPOINT ["entrypoint"]
CMD ["postgres"]
