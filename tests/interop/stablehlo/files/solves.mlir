"builtin.module"() <{sym_name = "jit_solves"}> ({
  "func.func"() <{function_type = (tensor<5x5xf64>, tensor<5x2xf64>) -> (tensor<5x5xf64>, tensor<5x2xf64>, tensor<5x5xf64>, tensor<f64>, tensor<f64>, tensor<5x2xf64>, tensor<5x2xf64>, tensor<5x2xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8][0]"}, {jax.result_info = "result[8][1]"}, {jax.result_info = "result[8][2]"}, {jax.result_info = "result[9]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg93: tensor<5x5xf64>, %arg94: tensor<5x2xf64>):
    %342 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %343 = "func.call"(%arg93) <{callee = @cholesky}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %344 = "func.call"(%arg93, %arg94) <{callee = @solve}> : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    %345 = "func.call"(%arg93) <{callee = @inv}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %346 = "func.call"(%arg93) <{callee = @det}> : (tensor<5x5xf64>) -> tensor<f64>
    %347 = "func.call"(%arg93) <{callee = @slogdet_3}> : (tensor<5x5xf64>) -> tensor<f64>
    %348 = "func.call"(%343, %arg94) <{callee = @_solve_triangular}> : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    %349 = "func.call"(%343, %arg94) <{callee = @_solve_triangular_4}> : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    %350 = "func.call"(%343, %arg94) <{callee = @_cho_solve}> : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    %351 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x5xi64>
    %352 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x5xi64>
    %353 = "stablehlo.broadcast_in_dim"(%342) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5x5xi64>
    %354 = "stablehlo.add"(%351, %353) : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi64>
    %355 = "stablehlo.compare"(%354, %352) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %356 = "stablehlo.convert"(%355) : (tensor<5x5xi1>) -> tensor<5x5xf64>
    %357 = "stablehlo.reverse"(%356) <{dimensions = array<i64: 0>}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %358 = "stablehlo.add"(%arg93, %357) : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %359:3 = "func.call"(%358) <{callee = @lu}> : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>)
    %360 = "func.call"(%arg93) <{callee = @matrix_power}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    "func.return"(%343, %344, %345, %346, %347, %348, %349, %350, %359#0, %359#1, %359#2, %360) : (tensor<5x5xf64>, tensor<5x2xf64>, tensor<5x5xf64>, tensor<f64>, tensor<f64>, tensor<5x2xf64>, tensor<5x2xf64>, tensor<5x2xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> tensor<5x5xf64>, sym_name = "cholesky", sym_visibility = "private"}> ({
  ^bb0(%arg92: tensor<5x5xf64>):
    %319 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %320 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %321 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %322 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %323 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %324 = "stablehlo.transpose"(%arg92) <{permutation = array<i64: 1, 0>}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %325 = "stablehlo.add"(%arg92, %324) : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %326 = "stablehlo.broadcast_in_dim"(%323) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %327 = "stablehlo.divide"(%325, %326) : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %328:2 = "stablehlo.custom_call"(%327) <{call_target_name = "lapack_dpotrf_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}> {mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], []) {i=5, j=5, k=5, l=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<i32>)
    %329 = "stablehlo.broadcast_in_dim"(%322) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<i32>
    %330 = "stablehlo.compare"(%328#1, %329) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %331 = "stablehlo.broadcast_in_dim"(%330) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<1x1xi1>
    %332 = "stablehlo.broadcast_in_dim"(%321) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %333 = "stablehlo.broadcast_in_dim"(%331) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %334 = "stablehlo.select"(%333, %328#0, %332) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %335 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x5xi64>
    %336 = "stablehlo.broadcast_in_dim"(%320) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5x5xi64>
    %337 = "stablehlo.add"(%335, %336) : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi64>
    %338 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x5xi64>
    %339 = "stablehlo.compare"(%337, %338) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %340 = "stablehlo.broadcast_in_dim"(%319) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %341 = "stablehlo.select"(%339, %334, %340) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    "func.return"(%341) : (tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>, sym_name = "solve", sym_visibility = "private"}> ({
  ^bb0(%arg82: tensor<5x5xf64>, %arg83: tensor<5x2xf64>):
    %296 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %297 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %298 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %299 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %300 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %301 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %302:3 = "stablehlo.custom_call"(%arg82) <{call_target_name = "lapack_dgetrf_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}> {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<i32>)
    %303 = "stablehlo.broadcast_in_dim"(%301) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %304 = "stablehlo.subtract"(%302#1, %303) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %305 = "stablehlo.broadcast_in_dim"(%300) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<i32>
    %306 = "stablehlo.compare"(%302#2, %305) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %307 = "stablehlo.broadcast_in_dim"(%306) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<1x1xi1>
    %308 = "stablehlo.broadcast_in_dim"(%299) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %309 = "stablehlo.broadcast_in_dim"(%307) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %310 = "stablehlo.select"(%309, %302#0, %308) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %311 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi32>
    %312:4 = "stablehlo.while"(%304, %298, %298, %311) ({
    ^bb0(%arg88: tensor<5xi32>, %arg89: tensor<i64>, %arg90: tensor<i64>, %arg91: tensor<5xi32>):
      %318 = "stablehlo.compare"(%arg89, %297) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%318) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg84: tensor<5xi32>, %arg85: tensor<i64>, %arg86: tensor<i64>, %arg87: tensor<5xi32>):
      %316:2 = "func.call"(%arg84, %arg86, %arg87) <{callee = @closed_call}> : (tensor<5xi32>, tensor<i64>, tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>)
      %317 = "stablehlo.add"(%arg85, %296) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%arg84, %317, %316#0, %316#1) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> ()
    }) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>)
    %313 = "stablehlo.transpose"(%arg83) <{permutation = array<i64: 1, 0>}> : (tensor<5x2xf64>) -> tensor<2x5xf64>
    %314 = "func.call"(%310, %312#3, %313) <{callee = @_lu_solve}> : (tensor<5x5xf64>, tensor<5xi32>, tensor<2x5xf64>) -> tensor<2x5xf64>
    %315 = "stablehlo.transpose"(%314) <{permutation = array<i64: 1, 0>}> : (tensor<2x5xf64>) -> tensor<5x2xf64>
    "func.return"(%315) : (tensor<5x2xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5xi32>, tensor<i64>, tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>), sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg75: tensor<5xi32>, %arg76: tensor<i64>, %arg77: tensor<5xi32>):
    %262 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %263 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %264 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %265 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %266 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %267 = "stablehlo.add"(%arg76, %266) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %268 = "stablehlo.compare"(%arg76, %265) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %269 = "stablehlo.convert"(%arg76) : (tensor<i64>) -> tensor<i64>
    %270 = "stablehlo.add"(%269, %264) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %271 = "stablehlo.select"(%268, %270, %arg76) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %272 = "stablehlo.dynamic_slice"(%arg75, %271) <{slice_sizes = array<i64: 1>}> : (tensor<5xi32>, tensor<i64>) -> tensor<1xi32>
    %273 = "stablehlo.reshape"(%272) : (tensor<1xi32>) -> tensor<i32>
    %274 = "stablehlo.compare"(%arg76, %265) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %275 = "stablehlo.convert"(%arg76) : (tensor<i64>) -> tensor<i64>
    %276 = "stablehlo.add"(%275, %264) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %277 = "stablehlo.select"(%274, %276, %arg76) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %278 = "stablehlo.dynamic_slice"(%arg77, %277) <{slice_sizes = array<i64: 1>}> : (tensor<5xi32>, tensor<i64>) -> tensor<1xi32>
    %279 = "stablehlo.reshape"(%278) : (tensor<1xi32>) -> tensor<i32>
    %280 = "stablehlo.compare"(%273, %263) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %281 = "stablehlo.add"(%273, %262) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %282 = "stablehlo.select"(%280, %281, %273) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %283 = "stablehlo.dynamic_slice"(%arg77, %282) <{slice_sizes = array<i64: 1>}> : (tensor<5xi32>, tensor<i32>) -> tensor<1xi32>
    %284 = "stablehlo.reshape"(%283) : (tensor<1xi32>) -> tensor<i32>
    %285 = "stablehlo.compare"(%arg76, %265) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %286 = "stablehlo.add"(%arg76, %264) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %287 = "stablehlo.select"(%285, %286, %arg76) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %288 = "stablehlo.convert"(%287) : (tensor<i64>) -> tensor<i32>
    %289 = "stablehlo.broadcast_in_dim"(%288) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %290 = "stablehlo.scatter"(%arg77, %289, %284) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg80: tensor<i32>, %arg81: tensor<i32>):
      "stablehlo.return"(%arg81) : (tensor<i32>) -> ()
    }) : (tensor<5xi32>, tensor<1xi32>, tensor<i32>) -> tensor<5xi32>
    %291 = "stablehlo.compare"(%273, %263) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %292 = "stablehlo.add"(%273, %262) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %293 = "stablehlo.select"(%291, %292, %273) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %294 = "stablehlo.broadcast_in_dim"(%293) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %295 = "stablehlo.scatter"(%290, %294, %279) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg78: tensor<i32>, %arg79: tensor<i32>):
      "stablehlo.return"(%arg79) : (tensor<i32>) -> ()
    }) : (tensor<5xi32>, tensor<1xi32>, tensor<i32>) -> tensor<5xi32>
    "func.return"(%267, %295) : (tensor<i64>, tensor<5xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>, tensor<5xi32>, tensor<2x5xf64>) -> tensor<2x5xf64>, sym_name = "_lu_solve", sym_visibility = "private"}> ({
  ^bb0(%arg72: tensor<5x5xf64>, %arg73: tensor<5xi32>, %arg74: tensor<2x5xf64>):
    %243 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %244 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %245 = "stablehlo.broadcast_in_dim"(%arg74) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x5xf64>) -> tensor<2x5x1xf64>
    %246 = "stablehlo.broadcast_in_dim"(%244) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %247 = "stablehlo.compare"(%arg73, %246) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %248 = "stablehlo.broadcast_in_dim"(%243) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %249 = "stablehlo.add"(%arg73, %248) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %250 = "stablehlo.select"(%247, %249, %arg73) : (tensor<5xi1>, tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %251 = "stablehlo.broadcast_in_dim"(%250) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
    %252 = "stablehlo.gather"(%245, %251) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1, 1>}> : (tensor<2x5x1xf64>, tensor<5x1xi32>) -> tensor<2x5x1xf64>
    %253 = "stablehlo.transpose"(%252) <{permutation = array<i64: 1, 2, 0>}> : (tensor<2x5x1xf64>) -> tensor<5x1x2xf64>
    %254 = "stablehlo.reshape"(%253) : (tensor<5x1x2xf64>) -> tensor<5x2xf64>
    %255 = "stablehlo.custom_call"(%arg72, %254) <{call_target_name = "lapack_dtrsm_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {diag = 85 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=2, m=5, n=2}, custom>} : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    %256 = "stablehlo.reshape"(%255) : (tensor<5x2xf64>) -> tensor<5x1x2xf64>
    %257 = "stablehlo.reshape"(%256) : (tensor<5x1x2xf64>) -> tensor<5x2xf64>
    %258 = "stablehlo.custom_call"(%arg72, %257) <{call_target_name = "lapack_dtrsm_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=2, m=5, n=2}, custom>} : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    %259 = "stablehlo.reshape"(%258) : (tensor<5x2xf64>) -> tensor<5x1x2xf64>
    %260 = "stablehlo.transpose"(%259) <{permutation = array<i64: 2, 0, 1>}> : (tensor<5x1x2xf64>) -> tensor<2x5x1xf64>
    %261 = "stablehlo.reshape"(%260) : (tensor<2x5x1xf64>) -> tensor<2x5xf64>
    "func.return"(%261) : (tensor<2x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> tensor<5x5xf64>, sym_name = "inv", sym_visibility = "private"}> ({
  ^bb0(%arg71: tensor<5x5xf64>):
    %235 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %236 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x5xi64>
    %237 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x5xi64>
    %238 = "stablehlo.broadcast_in_dim"(%235) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5x5xi64>
    %239 = "stablehlo.add"(%236, %238) : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi64>
    %240 = "stablehlo.compare"(%239, %237) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %241 = "stablehlo.convert"(%240) : (tensor<5x5xi1>) -> tensor<5x5xf64>
    %242 = "func.call"(%arg71, %241) <{callee = @solve_0}> : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    "func.return"(%242) : (tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>, sym_name = "solve_0", sym_visibility = "private"}> ({
  ^bb0(%arg61: tensor<5x5xf64>, %arg62: tensor<5x5xf64>):
    %212 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %213 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %214 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %215 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %216 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %217 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %218:3 = "stablehlo.custom_call"(%arg61) <{call_target_name = "lapack_dgetrf_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}> {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<i32>)
    %219 = "stablehlo.broadcast_in_dim"(%217) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %220 = "stablehlo.subtract"(%218#1, %219) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %221 = "stablehlo.broadcast_in_dim"(%216) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<i32>
    %222 = "stablehlo.compare"(%218#2, %221) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %223 = "stablehlo.broadcast_in_dim"(%222) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<1x1xi1>
    %224 = "stablehlo.broadcast_in_dim"(%215) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %225 = "stablehlo.broadcast_in_dim"(%223) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %226 = "stablehlo.select"(%225, %218#0, %224) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %227 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi32>
    %228:4 = "stablehlo.while"(%220, %214, %214, %227) ({
    ^bb0(%arg67: tensor<5xi32>, %arg68: tensor<i64>, %arg69: tensor<i64>, %arg70: tensor<5xi32>):
      %234 = "stablehlo.compare"(%arg68, %213) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%234) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg63: tensor<5xi32>, %arg64: tensor<i64>, %arg65: tensor<i64>, %arg66: tensor<5xi32>):
      %232:2 = "func.call"(%arg63, %arg65, %arg66) <{callee = @closed_call}> : (tensor<5xi32>, tensor<i64>, tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>)
      %233 = "stablehlo.add"(%arg64, %212) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%arg63, %233, %232#0, %232#1) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> ()
    }) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>)
    %229 = "stablehlo.transpose"(%arg62) <{permutation = array<i64: 1, 0>}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %230 = "func.call"(%226, %228#3, %229) <{callee = @_lu_solve_1}> : (tensor<5x5xf64>, tensor<5xi32>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %231 = "stablehlo.transpose"(%230) <{permutation = array<i64: 1, 0>}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    "func.return"(%231) : (tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>, tensor<5xi32>, tensor<5x5xf64>) -> tensor<5x5xf64>, sym_name = "_lu_solve_1", sym_visibility = "private"}> ({
  ^bb0(%arg58: tensor<5x5xf64>, %arg59: tensor<5xi32>, %arg60: tensor<5x5xf64>):
    %193 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %194 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %195 = "stablehlo.broadcast_in_dim"(%arg60) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<5x5xf64>) -> tensor<5x5x1xf64>
    %196 = "stablehlo.broadcast_in_dim"(%194) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %197 = "stablehlo.compare"(%arg59, %196) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %198 = "stablehlo.broadcast_in_dim"(%193) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %199 = "stablehlo.add"(%arg59, %198) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %200 = "stablehlo.select"(%197, %199, %arg59) : (tensor<5xi1>, tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %201 = "stablehlo.broadcast_in_dim"(%200) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
    %202 = "stablehlo.gather"(%195, %201) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 5, 1, 1>}> : (tensor<5x5x1xf64>, tensor<5x1xi32>) -> tensor<5x5x1xf64>
    %203 = "stablehlo.transpose"(%202) <{permutation = array<i64: 1, 2, 0>}> : (tensor<5x5x1xf64>) -> tensor<5x1x5xf64>
    %204 = "stablehlo.reshape"(%203) : (tensor<5x1x5xf64>) -> tensor<5x5xf64>
    %205 = "stablehlo.custom_call"(%arg58, %204) <{call_target_name = "lapack_dtrsm_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {diag = 85 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %206 = "stablehlo.reshape"(%205) : (tensor<5x5xf64>) -> tensor<5x1x5xf64>
    %207 = "stablehlo.reshape"(%206) : (tensor<5x1x5xf64>) -> tensor<5x5xf64>
    %208 = "stablehlo.custom_call"(%arg58, %207) <{call_target_name = "lapack_dtrsm_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %209 = "stablehlo.reshape"(%208) : (tensor<5x5xf64>) -> tensor<5x1x5xf64>
    %210 = "stablehlo.transpose"(%209) <{permutation = array<i64: 2, 0, 1>}> : (tensor<5x1x5xf64>) -> tensor<5x5x1xf64>
    %211 = "stablehlo.reshape"(%210) : (tensor<5x5x1xf64>) -> tensor<5x5xf64>
    "func.return"(%211) : (tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> tensor<f64>, sym_name = "det", sym_visibility = "private"}> ({
  ^bb0(%arg57: tensor<5x5xf64>):
    %190:2 = "func.call"(%arg57) <{callee = @slogdet}> : (tensor<5x5xf64>) -> (tensor<f64>, tensor<f64>)
    %191 = "stablehlo.exponential"(%190#1) : (tensor<f64>) -> tensor<f64>
    %192 = "stablehlo.multiply"(%190#0, %191) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "func.return"(%192) : (tensor<f64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> (tensor<f64>, tensor<f64>), sym_name = "slogdet", sym_visibility = "private"}> ({
  ^bb0(%arg44: tensor<5x5xf64>):
    %141 = "stablehlo.constant"() <{value = dense<0xFFF0000000000000> : tensor<f64>}> : () -> tensor<f64>
    %142 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %143 = "stablehlo.constant"() <{value = dense<-2> : tensor<i64>}> : () -> tensor<i64>
    %144 = "stablehlo.constant"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
    %145 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %146 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %147 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %148 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %149 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %150 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %151 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %152 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %153:3 = "stablehlo.custom_call"(%arg44) <{call_target_name = "lapack_dgetrf_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}> {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<i32>)
    %154 = "stablehlo.broadcast_in_dim"(%152) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %155 = "stablehlo.subtract"(%153#1, %154) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %156 = "stablehlo.broadcast_in_dim"(%151) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<i32>
    %157 = "stablehlo.compare"(%153#2, %156) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %158 = "stablehlo.broadcast_in_dim"(%157) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<1x1xi1>
    %159 = "stablehlo.broadcast_in_dim"(%150) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %160 = "stablehlo.broadcast_in_dim"(%158) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %161 = "stablehlo.select"(%160, %153#0, %159) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %162 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi32>
    %163:4 = "stablehlo.while"(%155, %149, %149, %162) ({
    ^bb0(%arg53: tensor<5xi32>, %arg54: tensor<i64>, %arg55: tensor<i64>, %arg56: tensor<5xi32>):
      %189 = "stablehlo.compare"(%arg54, %148) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%189) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg49: tensor<5xi32>, %arg50: tensor<i64>, %arg51: tensor<i64>, %arg52: tensor<5xi32>):
      %187:2 = "func.call"(%arg49, %arg51, %arg52) <{callee = @closed_call}> : (tensor<5xi32>, tensor<i64>, tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>)
      %188 = "stablehlo.add"(%arg50, %147) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%arg49, %188, %187#0, %187#1) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> ()
    }) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>)
    %164 = "func.call"(%161) <{callee = @diagonal}> : (tensor<5x5xf64>) -> tensor<5xf64>
    %165 = "stablehlo.broadcast_in_dim"(%146) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5xf64>
    %166 = "stablehlo.compare"(%164, %165) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xi1>
    %167 = "stablehlo.reduce"(%166, %145) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg47: tensor<i1>, %arg48: tensor<i1>):
      %186 = "stablehlo.or"(%arg47, %arg48) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%186) : (tensor<i1>) -> ()
    }) : (tensor<5xi1>, tensor<i1>) -> tensor<i1>
    %168 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi32>
    %169 = "stablehlo.compare"(%155, %168) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %170 = "func.call"(%169) <{callee = @count_nonzero}> : (tensor<5xi1>) -> tensor<i64>
    %171 = "stablehlo.broadcast_in_dim"(%146) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5xf64>
    %172 = "stablehlo.compare"(%164, %171) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xi1>
    %173 = "func.call"(%172) <{callee = @count_nonzero}> : (tensor<5xi1>) -> tensor<i64>
    %174 = "stablehlo.add"(%170, %173) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %175 = "func.call"(%174, %144) <{callee = @remainder}> : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %176 = "stablehlo.multiply"(%143, %175) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %177 = "stablehlo.add"(%176, %147) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %178 = "stablehlo.convert"(%177) : (tensor<i64>) -> tensor<f64>
    %179 = "stablehlo.multiply"(%142, %178) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %180 = "func.call"(%167, %146, %179) <{callee = @_where_2}> : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
    %181 = "stablehlo.abs"(%164) : (tensor<5xf64>) -> tensor<5xf64>
    %182 = "stablehlo.log"(%181) : (tensor<5xf64>) -> tensor<5xf64>
    %183 = "stablehlo.reduce"(%182, %146) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg45: tensor<f64>, %arg46: tensor<f64>):
      %185 = "stablehlo.add"(%arg45, %arg46) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%185) : (tensor<f64>) -> ()
    }) : (tensor<5xf64>, tensor<f64>) -> tensor<f64>
    %184 = "func.call"(%167, %141, %183) <{callee = @_where_2}> : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
    "func.return"(%180, %184) : (tensor<f64>, tensor<f64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> tensor<5xf64>, sym_name = "diagonal", sym_visibility = "private"}> ({
  ^bb0(%arg43: tensor<5x5xf64>):
    %117 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %118 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %119 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %120 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %121 = "stablehlo.case"(%119) ({
      "stablehlo.return"(%118) : (tensor<i32>) -> ()
    }, {
      "stablehlo.return"(%118) : (tensor<i32>) -> ()
    }) : (tensor<i32>) -> tensor<i32>
    %122 = "stablehlo.case"(%121) ({
      %123 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi64>
      %124 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi64>
      %125 = "stablehlo.broadcast_in_dim"(%120) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
      %126 = "stablehlo.compare"(%123, %125) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
      %127 = "stablehlo.broadcast_in_dim"(%117) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
      %128 = "stablehlo.add"(%123, %127) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
      %129 = "stablehlo.select"(%126, %128, %123) : (tensor<5xi1>, tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
      %130 = "stablehlo.broadcast_in_dim"(%120) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
      %131 = "stablehlo.compare"(%124, %130) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
      %132 = "stablehlo.broadcast_in_dim"(%117) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
      %133 = "stablehlo.add"(%124, %132) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
      %134 = "stablehlo.select"(%131, %133, %124) : (tensor<5xi1>, tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
      %135 = "stablehlo.convert"(%129) : (tensor<5xi64>) -> tensor<5xi32>
      %136 = "stablehlo.convert"(%134) : (tensor<5xi64>) -> tensor<5xi32>
      %137 = "stablehlo.broadcast_in_dim"(%135) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
      %138 = "stablehlo.broadcast_in_dim"(%136) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
      %139 = "stablehlo.concatenate"(%137, %138) <{dimension = 1 : i64}> : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
      %140 = "stablehlo.gather"(%arg43, %139) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<5x5xf64>, tensor<5x2xi32>) -> tensor<5xf64>
      "stablehlo.return"(%140) : (tensor<5xf64>) -> ()
    }) : (tensor<i32>) -> tensor<5xf64>
    "func.return"(%122) : (tensor<5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5xi1>) -> tensor<i64>, sym_name = "count_nonzero", sym_visibility = "private"}> ({
  ^bb0(%arg40: tensor<5xi1>):
    %109 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %110 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %111 = "stablehlo.broadcast_in_dim"(%110) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<5xi1>
    %112 = "stablehlo.compare"(%arg40, %111) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<5xi1>, tensor<5xi1>) -> tensor<5xi1>
    %113 = "stablehlo.convert"(%112) : (tensor<5xi1>) -> tensor<5xi32>
    %114 = "stablehlo.convert"(%113) : (tensor<5xi32>) -> tensor<5xi64>
    %115 = "stablehlo.reduce"(%114, %109) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg41: tensor<i64>, %arg42: tensor<i64>):
      %116 = "stablehlo.add"(%arg41, %arg42) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%116) : (tensor<i64>) -> ()
    }) : (tensor<5xi64>, tensor<i64>) -> tensor<i64>
    "func.return"(%115) : (tensor<i64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i64>, tensor<i64>) -> tensor<i64>, sym_name = "remainder", sym_visibility = "private"}> ({
  ^bb0(%arg38: tensor<i64>, %arg39: tensor<i64>):
    %96 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %97 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %98 = "stablehlo.convert"(%arg39) : (tensor<i64>) -> tensor<i64>
    %99 = "stablehlo.compare"(%98, %97) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %100 = "func.call"(%99, %96, %98) <{callee = @_where}> : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %101 = "stablehlo.remainder"(%arg38, %100) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %102 = "stablehlo.compare"(%101, %97) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %103 = "stablehlo.compare"(%101, %97) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %104 = "stablehlo.compare"(%100, %97) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %105 = "stablehlo.compare"(%103, %104) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %106 = "stablehlo.and"(%105, %102) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %107 = "stablehlo.add"(%101, %100) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %108 = "stablehlo.select"(%106, %107, %101) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    "func.return"(%108) : (tensor<i64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg35: tensor<i1>, %arg36: tensor<i64>, %arg37: tensor<i64>):
    %95 = "stablehlo.select"(%arg35, %arg36, %arg37) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    "func.return"(%95) : (tensor<i64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>, sym_name = "_where_2", sym_visibility = "private"}> ({
  ^bb0(%arg32: tensor<i1>, %arg33: tensor<f64>, %arg34: tensor<f64>):
    %94 = "stablehlo.select"(%arg32, %arg33, %arg34) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
    "func.return"(%94) : (tensor<f64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> tensor<f64>, sym_name = "slogdet_3", sym_visibility = "private"}> ({
  ^bb0(%arg19: tensor<5x5xf64>):
    %61 = "stablehlo.constant"() <{value = dense<0xFFF0000000000000> : tensor<f64>}> : () -> tensor<f64>
    %62 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %63 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %64 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %65 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %66 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %67 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %68 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %69 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %70:3 = "stablehlo.custom_call"(%arg19) <{call_target_name = "lapack_dgetrf_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}> {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<i32>)
    %71 = "stablehlo.broadcast_in_dim"(%69) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %72 = "stablehlo.subtract"(%70#1, %71) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %73 = "stablehlo.broadcast_in_dim"(%68) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<i32>
    %74 = "stablehlo.compare"(%70#2, %73) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %75 = "stablehlo.broadcast_in_dim"(%74) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<1x1xi1>
    %76 = "stablehlo.broadcast_in_dim"(%67) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %77 = "stablehlo.broadcast_in_dim"(%75) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %78 = "stablehlo.select"(%77, %70#0, %76) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %79 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi32>
    %80:4 = "stablehlo.while"(%72, %66, %66, %79) ({
    ^bb0(%arg28: tensor<5xi32>, %arg29: tensor<i64>, %arg30: tensor<i64>, %arg31: tensor<5xi32>):
      %93 = "stablehlo.compare"(%arg29, %65) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%93) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg24: tensor<5xi32>, %arg25: tensor<i64>, %arg26: tensor<i64>, %arg27: tensor<5xi32>):
      %91:2 = "func.call"(%arg24, %arg26, %arg27) <{callee = @closed_call}> : (tensor<5xi32>, tensor<i64>, tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>)
      %92 = "stablehlo.add"(%arg25, %64) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%arg24, %92, %91#0, %91#1) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> ()
    }) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>)
    %81 = "func.call"(%78) <{callee = @diagonal}> : (tensor<5x5xf64>) -> tensor<5xf64>
    %82 = "stablehlo.broadcast_in_dim"(%63) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5xf64>
    %83 = "stablehlo.compare"(%81, %82) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xi1>
    %84 = "stablehlo.reduce"(%83, %62) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg22: tensor<i1>, %arg23: tensor<i1>):
      %90 = "stablehlo.or"(%arg22, %arg23) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%90) : (tensor<i1>) -> ()
    }) : (tensor<5xi1>, tensor<i1>) -> tensor<i1>
    %85 = "stablehlo.abs"(%81) : (tensor<5xf64>) -> tensor<5xf64>
    %86 = "stablehlo.log"(%85) : (tensor<5xf64>) -> tensor<5xf64>
    %87 = "stablehlo.reduce"(%86, %63) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg20: tensor<f64>, %arg21: tensor<f64>):
      %89 = "stablehlo.add"(%arg20, %arg21) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%89) : (tensor<f64>) -> ()
    }) : (tensor<5xf64>, tensor<f64>) -> tensor<f64>
    %88 = "func.call"(%84, %61, %87) <{callee = @_where_2}> : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
    "func.return"(%88) : (tensor<f64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>, sym_name = "_solve_triangular", sym_visibility = "private"}> ({
  ^bb0(%arg17: tensor<5x5xf64>, %arg18: tensor<5x2xf64>):
    %60 = "stablehlo.custom_call"(%arg17, %arg18) <{call_target_name = "lapack_dtrsm_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=2, m=5, n=2}, custom>} : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    "func.return"(%60) : (tensor<5x2xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>, sym_name = "_solve_triangular_4", sym_visibility = "private"}> ({
  ^bb0(%arg15: tensor<5x5xf64>, %arg16: tensor<5x2xf64>):
    %59 = "stablehlo.custom_call"(%arg15, %arg16) <{call_target_name = "lapack_dtrsm_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=2, m=5, n=2}, custom>} : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    "func.return"(%59) : (tensor<5x2xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>, sym_name = "_cho_solve", sym_visibility = "private"}> ({
  ^bb0(%arg13: tensor<5x5xf64>, %arg14: tensor<5x2xf64>):
    %57 = "stablehlo.custom_call"(%arg13, %arg14) <{call_target_name = "lapack_dtrsm_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=2, m=5, n=2}, custom>} : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    %58 = "stablehlo.custom_call"(%arg13, %57) <{call_target_name = "lapack_dtrsm_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=2, m=5, n=2}, custom>} : (tensor<5x5xf64>, tensor<5x2xf64>) -> tensor<5x2xf64>
    "func.return"(%58) : (tensor<5x2xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>), sym_name = "lu", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<5x5xf64>):
    %56:3 = "func.call"(%arg12) <{callee = @_lu}> : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>)
    "func.return"(%56#0, %56#1, %56#2) : (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>), sym_name = "_lu", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<5x5xf64>):
    %20 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %21 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %22 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %23 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %24 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %25 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %26:3 = "stablehlo.custom_call"(%arg3) <{call_target_name = "lapack_dgetrf_ffi", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}> {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<i32>)
    %27 = "stablehlo.broadcast_in_dim"(%25) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5xi32>
    %28 = "stablehlo.subtract"(%26#1, %27) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    %29 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<i32>
    %30 = "stablehlo.compare"(%26#2, %29) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %31 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<1x1xi1>
    %32 = "stablehlo.broadcast_in_dim"(%23) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %33 = "stablehlo.broadcast_in_dim"(%31) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %34 = "stablehlo.select"(%33, %26#0, %32) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %35 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi32>
    %36:4 = "stablehlo.while"(%28, %22, %22, %35) ({
    ^bb0(%arg8: tensor<5xi32>, %arg9: tensor<i64>, %arg10: tensor<i64>, %arg11: tensor<5xi32>):
      %55 = "stablehlo.compare"(%arg9, %21) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%55) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg4: tensor<5xi32>, %arg5: tensor<i64>, %arg6: tensor<i64>, %arg7: tensor<5xi32>):
      %53:2 = "func.call"(%arg4, %arg6, %arg7) <{callee = @closed_call}> : (tensor<5xi32>, tensor<i64>, tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>)
      %54 = "stablehlo.add"(%arg5, %20) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%arg4, %54, %53#0, %53#1) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> ()
    }) : (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>) -> (tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>)
    %37 = "stablehlo.broadcast_in_dim"(%36#3) <{broadcast_dimensions = array<i64: 1>}> : (tensor<5xi32>) -> tensor<1x5xi32>
    %38 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xi32>
    %39 = "stablehlo.broadcast_in_dim"(%38) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
    %40 = "stablehlo.broadcast_in_dim"(%37) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x5xi32>) -> tensor<5x5xi32>
    %41 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<5x1xi32>) -> tensor<5x5xi32>
    %42 = "stablehlo.compare"(%40, %41) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %43 = "stablehlo.convert"(%42) : (tensor<5x5xi1>) -> tensor<5x5xf64>
    %44 = "func.call"(%34) <{callee = @tril}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %45 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x5xi64>
    %46 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x5xi64>
    %47 = "stablehlo.broadcast_in_dim"(%22) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5x5xi64>
    %48 = "stablehlo.add"(%45, %47) : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi64>
    %49 = "stablehlo.compare"(%48, %46) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %50 = "stablehlo.convert"(%49) : (tensor<5x5xi1>) -> tensor<5x5xf64>
    %51 = "stablehlo.add"(%44, %50) : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %52 = "func.call"(%34) <{callee = @triu}> : (tensor<5x5xf64>) -> tensor<5x5xf64>
    "func.return"(%43, %51, %52) : (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> tensor<5x5xf64>, sym_name = "tril", sym_visibility = "private"}> ({
  ^bb0(%arg2: tensor<5x5xf64>):
    %11 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %12 = "stablehlo.constant"() <{value = dense<-1> : tensor<i64>}> : () -> tensor<i64>
    %13 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x5xi64>
    %14 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5x5xi64>
    %15 = "stablehlo.add"(%13, %14) : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi64>
    %16 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x5xi64>
    %17 = "stablehlo.compare"(%15, %16) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %18 = "stablehlo.broadcast_in_dim"(%11) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %19 = "stablehlo.select"(%17, %arg2, %18) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    "func.return"(%19) : (tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> tensor<5x5xf64>, sym_name = "triu", sym_visibility = "private"}> ({
  ^bb0(%arg1: tensor<5x5xf64>):
    %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %3 = "stablehlo.constant"() <{value = dense<-1> : tensor<i64>}> : () -> tensor<i64>
    %4 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x5xi64>
    %5 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5x5xi64>
    %6 = "stablehlo.add"(%4, %5) : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi64>
    %7 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x5xi64>
    %8 = "stablehlo.compare"(%6, %7) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %9 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x5xf64>
    %10 = "stablehlo.select"(%8, %9, %arg1) : (tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    "func.return"(%10) : (tensor<5x5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xf64>) -> tensor<5x5xf64>, sym_name = "matrix_power", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<5x5xf64>):
    %0 = "stablehlo.dot_general"(%arg0, %arg0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %1 = "stablehlo.dot_general"(%0, %arg0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    "func.return"(%1) : (tensor<5x5xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
