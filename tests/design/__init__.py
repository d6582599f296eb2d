"""Tests of ``stator.design``. Where a module's tests are, if not in a file of its name:

design: test_planner.py
declaration: test_patterns.py
capacity_units: test_charges.py
unit_prices: test_totals.py
entities.entity: test_entities.py
entities.entity_versions: ../tables/test_versions.py
patterns.daily_window: simulation/test_daily_windows.py
cost.windows: simulation/test_daily_windows.py
entities.markers: test_entities.py
entities.conditions: test_entities.py
entities.hooks: ../tables/test_hooks.py
entities.derived_parts: test_derived_parts.py
entities.symbols: test_symbols.py
entities.shapes: test_entities.py
entities.codec: test_entities.py
entities.codec_source: test_codec_source.py
entities.wire: test_codec_source.py
entities.adapters: test_adapters.py
entities.custom_codecs: ../tables/test_stored_types.py
entities.stored_names: ../tables/test_stored_names.py
entities.written_keys: test_native_keys.py
entities.packed_numbers: test_packed_numbers.py
entities.variants: ../tables/test_variants.py
entities.model_libraries: test_adapters.py, ../tables/test_stored_types.py
entities.storable: ../typing/test_typing.py
patterns.pattern: test_patterns.py
patterns.write_pattern: test_patterns.py
patterns.query: test_asking.py
patterns.ask: test_asking.py
patterns.param: test_asking.py
patterns.condition_contents: test_asking.py
patterns.annotations: test_asking.py
patterns.compared_parts: test_derived_parts.py
patterns.compared_values: test_heat_and_advice.py
patterns.quantities: test_wrong_quantities.py
patterns.explanation: test_explain.py
entities.stored_defaults: ../tables/test_filter_defaults.py
patterns.filter_writer: test_planner_engine.py
plan.filtered_page: test_filter_prices.py
plan.html_table: test_html_table.py
plan.plan: test_planner.py
plan.projection: ../tables/test_reads.py
plan.templates: test_index_keys.py
plan.key_text: test_key_text.py
plan.key_sizes: test_key_sizes.py
plan.lock_file: test_lock_file.py
plan.json_data: test_lock_file.py
plan.demand: test_lock_file.py
plan.usage: test_totals.py
plan.stored_shape: test_stored_shape.py
plan.drift: test_drift.py
plan.own_table: export/test_tables.py
plan.guard_text: ../tables/test_guard_lookups.py
plan.example_items: documents/test_documents.py
documents.item_collections: documents/test_documents.py
table_settings: export/test_settings.py
planner.planner: test_planner.py
planner.layout_options: ../cli/test_plan.py
planner.longer_identity: test_longer_identity.py
planner.needs.need: test_read_estimates.py
planner.needs.write_rates: test_patterns.py
planner.needs.traced_needs: test_asking.py, test_sorted_orders.py, test_selected_fields.py
planner.paths.access_path: test_planner.py
planner.paths.served_need: test_planner.py
planner.paths.candidate_paths: test_planner.py
planner.choices: test_planner_optimal.py
planner.cost_model: test_planner.py
planner.weights: test_charges.py
planner.estimates: test_planner.py
planner.distinct_values: test_read_estimates.py
planner.selectivity: test_read_estimates.py
planner.queried_range: test_read_estimates.py
planner.search: test_planner_optimal.py
planner.assignment: test_planner_optimal.py
planner.slots: test_planner_optimal.py
planner.locked_choices: test_locked_choices.py
planner.entry_changes: test_entry_changes.py
planner.unkeyed_conditions: test_filter_prices.py
planner.keys.handwritten_keys: test_planner_handwritten.py
planner.keys.key_labels: test_planner.py
planner.keys.key_parts: test_planner_handwritten.py
planner.refusals: test_planner.py
planner.blueprint.table_blueprint: test_planner.py
planner.blueprint.read_plans: test_planner_engine.py
planner.blueprint.write_plans: test_planner.py
planner.blueprint.write_usage: test_totals.py, test_layout_bytes.py (sparse indexes)
planner.blueprint.layout_bytes: test_layout_bytes.py, test_expert_estimates.py
planner.blueprint.key_conditions: test_planner_engine.py
planner.blueprint.slot_names: test_planner.py
planner.blueprint.reasons: test_planner.py, test_patterns.py (``within=``)
cost.billed_plan: test_totals.py
cost.growth: test_growth.py
planner.declared_shares: test_declared_shares.py
patterns.hidden_branches: test_hidden_branches.py
cost.report: test_cost.py
cost.workload: test_cost.py
cost.difference: test_cost.py
cost.origin: test_cost.py
cost.charges: test_charges.py, test_price_examples.py
cost.prices.price_list: test_price_list.py

``test_published.py`` plans published designs, ``test_planner_random.py`` random ones.
"""
