"""Which settlement running code belongs to: tasks inherit it, and one that is done is nobody's."""

from __future__ import annotations

import asyncio

from scrapy import Request

from webcrawl.core.frontier import Lease
from webcrawl.settlement import CURRENT, Settlement, current


def settlement(page: int) -> Settlement:
    return Settlement(Lease(page, 1, "http://one.test/", 0, 0, 0.0, 0, 0, 0.0, None), Request("http://one.test/"))


def test_tasks_know_their_own_settlement_however_they_interleave() -> None:
    async def visit(page: int) -> bool:
        found = []
        for _ in range(5):
            await asyncio.sleep(0)
            mine = current()
            assert mine is not None
            found.append(mine.lease.page)
        return found == [page] * 5

    async def crawl() -> list[bool]:
        tasks = []
        for page in range(1, 20):
            CURRENT.set(settlement(page))
            tasks.append(asyncio.create_task(visit(page)))
        CURRENT.set(None)
        return await asyncio.gather(*tasks)

    assert all(asyncio.run(crawl()))


def test_a_settlement_that_is_done_is_nobodys() -> None:
    async def crawl() -> None:
        assert current() is None
        mine = settlement(1)
        CURRENT.set(mine)
        assert current() is mine
        mine.is_done = True
        assert current() is None

    asyncio.run(crawl())
