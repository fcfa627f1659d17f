# make docs: the documentation as a site in build/site. MkDocs comes from PyPI into .tools/docs, once.
MKDOCS := mkdocs==1.6.1

.PHONY: docs
docs: .tools/docs/ready
	@PYTHONPATH=.tools/docs python3 -m mkdocs build --strict -f site/mkdocs.yml
	@echo "build/site/index.html"

.tools/docs/ready: site/build.mk
	@rm -rf .tools/docs
	python3 -m pip install --quiet --target .tools/docs $(MKDOCS)
	@touch $@
